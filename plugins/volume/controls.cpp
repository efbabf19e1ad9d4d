// Controls of volume.render; see controls.h.
#include "plugins/volume/controls.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "plugins/volume/colour_maps.h"
#include "plugins/volume/make_control.h"

namespace millrace::volume {

namespace {

constexpr std::string_view kContrastKey = "look.contrast";
// The contrast may go half a contrast beyond the first one on both sides.
constexpr float kContrastLow = -0.5F, kContrastHigh = 1.5F;
constexpr float kGammaLow = 0.1F, kGammaHigh = 4, kIsoLow = 0.001F; // as the parameter's

} // namespace

std::vector<ViewControl> controls_of(const std::string& mode, const std::string& map, float iso) {
  return {make_choice("look.mode", "Mode", kModes, place_of(mode, kModes)),
          make_choice("look.map", "Colours", kColourMaps, place_of(map, kColourMaps)),
          make_range(kContrastKey, "Contrast", kContrastLow, kContrastHigh),
          make_number("look.gamma", "Gamma", kGammaLow, kGammaHigh, 1),
          make_number("look.opacity", "Opacity", 0, 1, 1),
          make_number("look.iso", "Surface level", kIsoLow, 1, iso),
          make_range("look.crop_x", "Crop x", 0, 1),
          make_range("look.crop_y", "Crop y", 0, 1),
          make_range("look.crop_z", "Crop z", 0, 1)};
}

bool is_contrast(const ViewControl& control) {
  return std::equal(kContrastKey.begin(), kContrastKey.end(), std::begin(control.key));
}

} // namespace millrace::volume
