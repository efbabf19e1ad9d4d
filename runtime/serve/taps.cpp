// Watches outputs for a client, and writes samples; see taps.h.
#include "serve/taps.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "serve/message.h"

namespace millrace::serve {

using nlohmann::ordered_json;

namespace {

enum class SampleKind : uint16_t { none, picture, tensor, records, packet };
constexpr const char* kKindNames[] = {"none", "picture", "tensor", "records", "packet"};
constexpr uint32_t kNoValue = 1; // a flag

SampleKind kind_of(const Sample& sample) { return static_cast<SampleKind>(sample.of.shown.index()); }

// A number, or null for one that JSON does not have.
ordered_json json_of(double number) { return std::isfinite(number) ? ordered_json(number) : ordered_json(nullptr); }
ordered_json json_of(const exec::Number& number) {
  return std::visit(
      [](auto one) {
        if constexpr (std::is_same_v<decltype(one), double>) return json_of(one);
        return ordered_json(one);
      },
      number);
}

ordered_json json_of(const exec::ShownTensor& tensor) {
  ordered_json json = {{"dtype", tensor.dtype},         {"shape", tensor.shape},          {"count", tensor.count},
                       {"looked_at", tensor.looked_at}, {"min", json_of(tensor.min)},     {"max", json_of(tensor.max)},
                       {"mean", json_of(tensor.mean)},  {"not_finite", tensor.not_finite}};
  json["heat"] = {{"width", tensor.heat_width}, {"height", tensor.heat_height}, {"values", tensor.heat}};
  return json;
}

ordered_json json_of(const exec::ShownRecords& records) {
  ordered_json fields = ordered_json::array(), rows = ordered_json::array();
  for (const auto& field : records.fields) fields.push_back(field.name);
  for (const std::vector<exec::Number>& numbers : records.rows) {
    ordered_json& row = rows.emplace_back(ordered_json::array());
    size_t next = 0;
    for (const auto& field : records.fields) {
      ordered_json several = ordered_json::array();
      for (uint32_t n = 0; n < field.count; ++n) several.push_back(json_of(numbers[next++]));
      row.push_back(field.count == 1 ? several[0] : std::move(several));
    }
  }
  return {{"type", records.type}, {"count", records.count}, {"shown", rows.size()}, {"fields", fields}, {"rows", rows}};
}

ordered_json json_of(const exec::ShownPacket& packet) {
  return {{"bytes", packet.bytes},
          {"key", packet.is_key},
          {"pts_ns", packet.pts_ns},
          {"duration_ns", packet.duration_ns},
          {"dts_ns", packet.dts_ns}};
}

// Names and numbers of a run: what is no UTF-8 in them is replaced.
std::string text_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string base64(const std::vector<uint8_t>& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0'); // and the end that OpenSSL writes
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(), static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

template <class Number>
void put(std::string& bytes, Number number) {
  for (size_t b = 0; b < sizeof number; ++b)
    bytes += static_cast<char>(static_cast<std::make_unsigned_t<Number>>(number) >> (8 * b));
}

// The content of the sample, if that is JSON.
ordered_json content_of(const Sample& sample) {
  return std::visit(
      [](const auto& shown) -> ordered_json {
        using Shown = std::decay_t<decltype(shown)>;
        if constexpr (std::is_same_v<Shown, std::monostate> || std::is_same_v<Shown, exec::ShownPicture>)
          return nullptr;
        else
          return json_of(shown);
      },
      sample.of.shown);
}

} // namespace

std::string sample_line(const Sample& sample) {
  ordered_json params = {{"tap", sample.tap}, {"tick", sample.of.tick}, {"media_ns", sample.of.media_ns}};
  const auto* const picture = std::get_if<exec::ShownPicture>(&sample.of.shown);
  if (picture) {
    params["width"] = picture->width;
    params["height"] = picture->height;
  }
  params["kind"] = kKindNames[sample.of.shown.index()];
  if (picture) {
    params["shown"] = {picture->shown_width, picture->shown_height};
    params["data"] = "";
  } else if (kind_of(sample) != SampleKind::none) {
    params["data"] = content_of(sample);
  }
  std::string line = text_of({{"jsonrpc", "2.0"}, {"method", "tap"}, {"params", std::move(params)}});
  // A picture is put in last: to look for letters that JSON writes otherwise would take as long as all the rest.
  if (picture) line.insert(line.size() - std::strlen("\"}}"), base64(picture->rgba));
  return line;
}

std::string sample_bytes(const Sample& sample) {
  const auto* const picture = std::get_if<exec::ShownPicture>(&sample.of.shown);
  const SampleKind kind = kind_of(sample);
  const std::string json = picture || kind == SampleKind::none ? "" : text_of(content_of(sample));
  std::string bytes;
  put(bytes, sample.tap);
  put(bytes, kind == SampleKind::none ? kNoValue : 0u);
  put(bytes, sample.of.tick);
  put(bytes, sample.of.media_ns);
  put(bytes, picture ? picture->width : 0u);
  put(bytes, picture ? picture->height : 0u);
  put(bytes, static_cast<uint16_t>(kind));
  put(bytes, uint16_t{0});
  put(bytes, static_cast<uint32_t>(picture ? 8 + picture->rgba.size() : json.size()));
  if (!picture) return bytes + json;
  put(bytes, picture->shown_width);
  put(bytes, picture->shown_height);
  bytes.append(reinterpret_cast<const char*>(picture->rgba.data()), picture->rgba.size());
  return bytes;
}

void ClientTaps::add(const Request& request, const Make& make, const std::function<void()>& wake,
                     ordered_json& answer) {
  const auto output = request.params.find("output");
  if (output == request.params.end() || !output->is_string())
    throw Refused(RpcCode::bad_params, "output is such as \"blur.video\"", "/params/output");
  const auto width = request.params.find("width"), hz = request.params.find("hz");
  exec::TapOptions options;
  if (width != request.params.end()) {
    if (!width->is_number_integer() || *width < exec::kTapWidthMin || *width > exec::kTapWidthMax)
      throw Refused(RpcCode::bad_params, "width is a number from 16 to 960", "/params/width");
    options.width = width->get<uint32_t>();
  }
  const double rate = hz == request.params.end() ? kTapHz : hz->is_number() ? hz->get<double>() : 0;
  if (!(rate >= kTapHzMin && rate <= kTapHzMax))
    throw Refused(RpcCode::bad_params, "hz is a number from 0.1 to 20", "/params/hz");
  if (taps_.size() >= kTapsMax)
    throw Refused(RpcCode::busy, "a client has at most " + std::to_string(kTapsMax) + " taps");
  options.on_taken = wake;
  One one;
  one.tap = make(output->get<std::string>(), options);
  one.number = ++last_number_;
  one.period_ms = static_cast<int64_t>(std::round(1000 / rate));
  taps_.push_back(std::move(one));
  answer = {{"tap", last_number_}};
}

ClientTaps::One& ClientTaps::find(const Request& request) {
  const auto number = request.params.find("tap");
  const bool is_number = number != request.params.end() && number->is_number_integer();
  for (One& one : taps_)
    if (is_number && *number == one.number) return one;
  throw Refused(RpcCode::bad_params, "this client has no such tap", "/params/tap");
}

void ClientTaps::remove(const Request& request) {
  const uint32_t number = find(request).number;
  std::erase_if(taps_, [&](const One& one) { return one.number == number; });
}

void ClientTaps::acknowledge(const Request& request) {
  One& one = find(request);
  if (one.is_sent) one.waits = one.is_sent = false;
}

int64_t ClientTaps::due_ms() const {
  int64_t due_ms = INT64_MAX;
  for (const One& one : taps_) {
    if (one.tap->has_taken()) return 0;
    if (!one.waits) due_ms = std::min(due_ms, one.due_ms);
  }
  return due_ms;
}

std::optional<Sample> ClientTaps::take(int64_t now_ms) {
  for (One& one : taps_) {
    if (one.waits || one.due_ms > now_ms) continue;
    one.waits = true;
    one.due_ms = now_ms + one.period_ms;
    one.tap->arm();
  }
  const auto ready = std::find_if(taps_.begin(), taps_.end(), [](const One& one) { return one.tap->has_taken(); });
  if (ready == taps_.end()) return std::nullopt;
  std::optional<exec::TapSample> sample = ready->tap->take();
  if (!sample) {
    ready->waits = false;
    return std::nullopt;
  }
  ready->is_sent = true;
  Sample taken{ready->number, std::move(*sample)};
  std::rotate(ready, ready + 1, taps_.end()); // the others have their turn first
  return taken;
}

} // namespace millrace::serve
