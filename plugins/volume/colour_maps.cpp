// Colour maps as straight lines between a few colours at equal distances; those of viridis, magma and turbo are read
// off the published maps.
#include "plugins/volume/colour_maps.h"

#include <cmath>
#include <map>
#include <vector>

namespace millrace::volume {

namespace {

using Stops = std::vector<uint32_t>; // 0xrrggbb

const Stops& stops_of(const std::string& name) {
  static const std::map<std::string, Stops> kMaps = {
      {"gray", {0x000000, 0xffffff}},
      {"red", {0x000000, 0xff0000}},
      {"green", {0x000000, 0x00ff00}},
      {"blue", {0x000000, 0x0000ff}},
      {"cyan", {0x000000, 0x00ffff}},
      {"magenta", {0x000000, 0xff00ff}},
      {"yellow", {0x000000, 0xffff00}},
      {"fire", {0x000000, 0x7f0000, 0xff5500, 0xffd400, 0xffffff}},
      {"ice", {0x000000, 0x003a7f, 0x1f8fd0, 0x8fdcf5, 0xffffff}},
      {"viridis", {0x440154, 0x472d7b, 0x3b528b, 0x2c728e, 0x21918c, 0x28ae80, 0x5ec962, 0xaddc30, 0xfde725}},
      {"magma", {0x000004, 0x1d1147, 0x51127c, 0x832681, 0xb73779, 0xe75263, 0xfc8961, 0xfec488, 0xfcfdbf}},
      {"turbo", {0x30123b, 0x4675ed, 0x1bcfd4, 0x61fc6c, 0xd1e834, 0xfe9b2d, 0xdb3a07, 0x7a0403}},
  };
  return kMaps.at(name);
}

double channel(uint32_t colour, int shift) { return static_cast<double>(colour >> shift & 0xff); }

} // namespace

std::array<uint8_t, 3 * 256> colour_map(const std::string& name) {
  const Stops& stops = stops_of(name);
  std::array<uint8_t, 3 * 256> map{};
  for (size_t level = 0; level < 256; ++level) {
    const double at = static_cast<double>(level) / 255 * static_cast<double>(stops.size() - 1);
    const auto before = std::min(static_cast<size_t>(at), stops.size() - 2);
    for (int c = 0; c < 3; ++c) {
      const int shift = 16 - 8 * c;
      const double mixed =
          std::lerp(channel(stops[before], shift), channel(stops[before + 1], shift), at - static_cast<double>(before));
      map[3 * level + static_cast<size_t>(c)] = static_cast<uint8_t>(std::lround(mixed));
    }
  }
  return map;
}

} // namespace millrace::volume
