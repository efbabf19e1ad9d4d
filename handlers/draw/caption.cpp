// Parses captions and fills them in. A caption is a list of pieces: fixed text, and parts that change.
#include "handlers/draw/caption.h"

#include <millrace/nearest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>

namespace millrace::handlers {
namespace {

constexpr const char* kClockForm = "%Y-%m-%d %H:%M:%S";

// The next piece of a text: either fixed text or the place name between braces. next_cut() removes it from `text`.
struct Cut {
  std::string fixed;
  std::optional<std::string_view> place;
};
Cut next_cut(std::string_view& text) {
  Cut cut;
  while (!text.empty()) {
    if (text[0] != '{' || text.starts_with("{{")) {
      cut.fixed += text[0];
      text.remove_prefix(text[0] == '{' ? 2 : 1);
      continue;
    }
    if (!cut.fixed.empty()) return cut;
    const size_t end = text.find('}');
    if (end == std::string_view::npos)
      throw std::invalid_argument("the text has '" + std::string(text) + "', which no '}' ends; {{ stands for a brace");
    cut.place = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return cut;
  }
  return cut;
}

std::string_view name_of_place(std::string_view place) { return place.substr(0, place.find(':')); }
bool is_clock(std::string_view place) { return name_of_place(place) == "clock" || name_of_place(place) == "utc"; }

std::optional<draw::ValueForm> form_of(const mr_field& field) {
  using draw::ValueForm;
  if (field.count != 1) return std::nullopt;
  switch (bit_of(DType{field.dtype_code, field.dtype_bits})) {
    case MR_DTYPES_INT8: return ValueForm::i8;
    case MR_DTYPES_INT16: return ValueForm::i16;
    case MR_DTYPES_INT32: return ValueForm::i32;
    case MR_DTYPES_INT64: return ValueForm::i64;
    case MR_DTYPES_UINT8: return ValueForm::u8;
    case MR_DTYPES_UINT16: return ValueForm::u16;
    case MR_DTYPES_UINT32: return ValueForm::u32;
    case MR_DTYPES_UINT64: return ValueForm::u64;
    case MR_DTYPES_FLOAT32: return ValueForm::f32;
    case MR_DTYPES_FLOAT64: return ValueForm::f64;
    default: return std::nullopt;
  }
}

std::span<const mr_field> fields_of(const CaptionSource& source) {
  return source.type ? std::span(source.type->fields, source.type->field_count) : std::span<const mr_field>();
}

// Every name that may stand between braces.
std::vector<std::string> known_places(std::span<const CaptionSource> sources) {
  std::vector<std::string> names = {"index", "time", "clock", "utc"};
  for (const CaptionSource& source : sources) {
    names.push_back(std::string(source.name) + ".count");
    for (const mr_field& field : fields_of(source))
      if (form_of(field)) names.push_back(std::string(source.name) + "." + field.name);
  }
  return names;
}

// Throws for an unknown place. The message suggests the nearest known name and the corrected text, or lists all known
// names if none is near.
[[noreturn]] void refuse(std::string_view place, std::string_view text, std::span<const CaptionSource> sources) {
  const std::vector<std::string> known = known_places(sources);
  const std::string wrong = "{" + std::string(place) + "}", sentence = "the text has '" + wrong + "'";
  if (const std::string near = nearest_name(name_of_place(place), known); !near.empty()) {
    std::string edited(text);
    edited.replace(edited.find(wrong), wrong.size(), "{" + near + "}");
    throw std::invalid_argument(sentence + "; did you mean {" + near + "}?\ntry: text=\"" + edited + "\"");
  }
  std::string list;
  for (const std::string& name : known) list += "{" + name + "}, ";
  throw std::invalid_argument(sentence + ", but knows " + list + "and {{ for a brace");
}

std::tm broken_down(Caption::Kind kind, std::time_t now) {
  std::tm parts{};
  if (kind == Caption::Kind::utc_clock)
    gmtime_r(&now, &parts);
  else
    localtime_r(&now, &parts);
  return parts;
}

} // namespace

Caption::Caption(std::string_view text, std::span<const CaptionSource> sources) {
  if (text.size() > kTextMax)
    throw std::invalid_argument("the text is longer than " + std::to_string(kTextMax) + " bytes");
  for (std::string_view rest = text; !rest.empty();) {
    const Cut cut = next_cut(rest);
    if (cut.place)
      add_place(*cut.place, text, sources);
    else
      pieces_.push_back({Kind::text, cut.fixed, 0});
  }
}

bool Caption::shows_clock(std::string_view text) {
  while (!text.empty())
    if (const Cut cut = next_cut(text); cut.place && is_clock(*cut.place)) return true;
  return false;
}

void Caption::add_place(std::string_view place, std::string_view text, std::span<const CaptionSource> sources) {
  if (place == "index") return pieces_.push_back({Kind::index, "", 0});
  if (place == "time") return pieces_.push_back({Kind::time, "", 0});
  if (!is_clock(place)) {
    if (!add_value(place, sources)) refuse(place, text, sources);
    return;
  }
  const size_t colon = place.find(':');
  Piece piece{place.starts_with("utc") ? Kind::utc_clock : Kind::local_clock,
              colon == std::string_view::npos ? kClockForm : std::string(place.substr(colon + 1)), 0};
  length_ = 0;
  append_clock(piece, 0);
  if (std::exchange(length_, 0) == 0)
    throw std::invalid_argument("the text has '{" + std::string(place) +
                                "}', which shows nothing; a form is that of date(1), such as {clock:%H:%M:%S}");
  pieces_.push_back(std::move(piece));
}

// False if no source has such a number.
bool Caption::add_value(std::string_view name, std::span<const CaptionSource> sources) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view of = name.substr(0, dot), field = name.substr(dot + 1);
  for (size_t s = 0; s < sources.size(); ++s) {
    if (of != sources[s].name) continue;
    std::optional<draw::ValuePlace> place;
    if (field == "count") place = {draw::ValueForm::count, static_cast<uint8_t>(s), 0, 0};
    for (const mr_field& one : fields_of(sources[s]))
      if (!place && field == one.name && form_of(one)) place = {*form_of(one), static_cast<uint8_t>(s), 0, one.offset};
    if (!sources[s].connected)
      throw std::invalid_argument("the text has '{" + std::string(name) + "}', and nothing is joined to the input " +
                                  std::string(of));
    if (!place) return false;
    if (values_.size() == draw::kValuePlacesMax)
      throw std::invalid_argument("the text shows more than " + std::to_string(draw::kValuePlacesMax) +
                                  " numbers of records");
    pieces_.push_back({Kind::value, "", static_cast<uint32_t>(values_.size())});
    values_.push_back(*place);
    return true;
  }
  return false;
}

void Caption::append(std::string_view text) {
  const size_t count = std::min(text.size(), kLineMax - length_);
  std::copy_n(text.begin(), count, line_.begin() + static_cast<ptrdiff_t>(length_));
  length_ += count;
}

void Caption::append_clock(const Piece& piece, std::time_t now) {
  const std::tm parts = broken_down(piece.kind, now);
  length_ += std::strftime(line_.data() + length_, kLineMax - length_, piece.text.c_str(), &parts);
}

void Caption::append_value(const draw::ValuePlace& place, std::span<const draw::LineRecords> records) {
  std::array<uint16_t, 32> glyphs; // a number has at most 24
  draw::LineWriter writer{glyphs.data()};
  writer.put_value(place, place.source < records.size() ? records[place.source] : draw::LineRecords{});
  for (uint32_t i = 0; i < writer.count; ++i) append({&draw::kNumberGlyphs[glyphs[i]], 1});
}

std::string_view Caption::line(uint64_t index, int64_t media_time_ns, std::span<const draw::LineRecords> records,
                               std::time_t now) {
  length_ = 0;
  char number[48];
  const int64_t ms = media_time_ns / 1'000'000;
  for (const Piece& piece : pieces_) {
    switch (piece.kind) {
      case Kind::text: append(piece.text); break;
      case Kind::index:
        std::snprintf(number, sizeof number, "%" PRIu64, index);
        append(number);
        break;
      case Kind::time: {
        const int64_t positive = ms < 0 ? -ms : ms;
        std::snprintf(number, sizeof number, "%s%" PRId64 ":%02" PRId64 ":%02" PRId64 ".%03" PRId64, ms < 0 ? "-" : "",
                      positive / 3'600'000, positive / 60'000 % 60, positive / 1000 % 60, positive % 1000);
        append(number);
        break;
      }
      case Kind::local_clock:
      case Kind::utc_clock: append_clock(piece, now); break;
      case Kind::value: append_value(values_[piece.value], records); break;
    }
  }
  return {line_.data(), length_};
}

} // namespace millrace::handlers
