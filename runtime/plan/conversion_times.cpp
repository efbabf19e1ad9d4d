// Finds how long conversions take where they may stand; see conversion_times.h.
#include "plan/conversion_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/graph.h"
#include "millrace/payload.h"
#include "plan/draft.h"
#include "plan/format_text.h"
#include "plan/machine.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

constexpr uint32_t kHdRows = 720; // untagged video with this many rows or more is taken for bt709

// A conversion of which nothing is measured is taken to need this long for its call, and to read and write so many bits
// in each nanosecond.
constexpr uint64_t kConversionNs = 5000, kConvertedBitsPerNs = 32;

uint64_t bits_per_pixel(uint32_t pixel) {
  if (pixel == MR_PIXEL_P010) return 24;
  return kYcbcr >> pixel & 1 ? 12 : 8 * bytes_per_pixel(static_cast<Pixel>(pixel));
}

} // namespace

void set_role(Settings& settings, const plugin::HandlerInfo& converter, uint32_t role, std::string text) {
  if (const auto* param = converter.find_role(role)) settings.emplace_back(param->name, std::move(text));
}

std::string_view name_of_pixel(uint64_t bit) { return kPixelNames[static_cast<size_t>(std::countr_zero(bit))]; }

uint64_t bytes_as(mr_format picture, uint32_t pixel) {
  picture.pixel_formats = 1ull << pixel;
  const uint64_t bytes = capacity_of(picture);
  return bytes == UINT64_MAX ? 0 : bytes;
}

mr_format converted(mr_format picture, uint64_t wanted) {
  const bool keeps = picture.pixel_formats & kYcbcr, is_ycbcr = wanted & kYcbcr;
  picture.pixel_formats = wanted;
  if (!is_ycbcr) picture.color = MR_COLOR_SRGB;
  if (is_ycbcr && !keeps) picture.color = picture.height >= kHdRows ? MR_COLOR_BT709 : MR_COLOR_BT601;
  if (!is_ycbcr || !keeps || picture.range != MR_RANGE_FULL)
    picture.range = is_ycbcr ? MR_RANGE_LIMITED : MR_RANGE_FULL;
  return picture;
}

std::string elsewhere_words(PixelTree tree, const PixelChoice& choice, uint32_t here,
                            const std::function<std::string(uint32_t)>& name_of) {
  tree.choices = 1ull << choice.format;
  const PixelChoice other = choose_pixels(tree, here);
  if (other.impossible > choice.impossible || other.lost > choice.lost) return "";
  std::string places;
  for (const uint32_t there : other.converted) places += (places.empty() ? "" : " and ") + name_of(there);
  return fmt::format("about {} a tick here, {} after {}", time_words(static_cast<double>(choice.ns) / 1000),
                     time_words(static_cast<double>(other.ns) / 1000), places);
}

Settings ConversionTimes::settings_for(const mr_format& gives, uint64_t wanted) const {
  Settings settings;
  set_role(settings, *converter_, MR_ROLE_PIXELS, std::string(name_of_pixel(wanted)));
  if (!(wanted & kYcbcr)) return settings;
  const mr_format made = converted(gives, wanted);
  if (made.color == MR_COLOR_BT709 || made.color == MR_COLOR_BT2020)
    set_role(settings, *converter_, MR_ROLE_MATRIX, made.color == MR_COLOR_BT709 ? "bt709" : "bt2020");
  if (made.range == MR_RANGE_FULL) set_role(settings, *converter_, MR_ROLE_RANGE, "full");
  return settings;
}

uint64_t ConversionTimes::conversion_ns(mr_format picture, uint32_t from, uint32_t to) const {
  const uint64_t pixels = uint64_t{picture.width} * picture.height;
  const uint64_t guessed = kConversionNs + pixels * (bits_per_pixel(from) + bits_per_pixel(to)) / kConvertedBitsPerNs;
  if (!converter_ || machine_.bodies.empty()) return guessed;
  picture.pixel_formats = 1ull << from;
  graph::Handler conversion;
  for (const auto& [name, text] : settings_for(picture, 1ull << to)) conversion.params.push_back({name, text, {}, {}});
  return measured_ns(converter_->type, conversion, bytes_as(picture, from)).value_or(guessed);
}

ByPixel ConversionTimes::own_ns(const DraftHandler& reader, const mr_format& picture) const {
  ByPixel times{};
  if (reader.declared->inserted && reader.info->converts(MR_ROLE_PIXELS)) {
    const std::string& role = reader.info->find_role(MR_ROLE_PIXELS)->name;
    const auto& params = reader.declared->params;
    const auto named = std::find_if(params.begin(), params.end(), [&](const auto& one) { return one.name == role; });
    const auto found = std::find(std::begin(kPixelNames), std::end(kPixelNames), named->text);
    const auto to = static_cast<uint32_t>(found - std::begin(kPixelNames));
    for (uint32_t from = 1; from < MR_PIXEL_COUNT; ++from) times[from] = conversion_ns(picture, from, to);
  } else if (reader.input_count == 1 && !machine_.bodies.empty()) {
    for (uint32_t from = 1; from < MR_PIXEL_COUNT; ++from)
      times[from] = measured_ns(reader.info->type, *reader.declared, bytes_as(picture, from)).value_or(0);
  }
  return times;
}

std::optional<uint64_t> ConversionTimes::measured_ns(const std::string& type, const graph::Handler& declared,
                                                     uint64_t bytes) const {
  const auto cost = measured_cost(machine_, {type, settings_of(declared), machine_.domains[0].name}, bytes, 1);
  if (!cost) return std::nullopt;
  return static_cast<uint64_t>(std::llround(cost->us * 1000));
}

} // namespace millrace::plan
