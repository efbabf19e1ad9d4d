// Controls of volume.render; see controls.h.
#include "plugins/volume/controls.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "plugins/volume/colour_maps.h"

namespace millrace::volume {

namespace {

constexpr std::string_view kContrastKey = "look.contrast";
// The contrast may go half a contrast beyond the first one on both sides.
constexpr float kContrastLow = -0.5F, kContrastHigh = 1.5F;
constexpr float kGammaLow = 0.1F, kGammaHigh = 4, kIsoLow = 0.001F; // as the parameter's

ViewControl control(ViewControlKind kind, std::string_view key, std::string_view label) {
  ViewControl made;
  made.kind = static_cast<int32_t>(kind);
  std::ranges::copy(key, made.key);
  std::ranges::copy(label, made.label);
  return made;
}

ViewControl choice(std::string_view key, std::string_view label, std::initializer_list<const char*> names,
                   const std::string& value) {
  ViewControl made = control(ViewControlKind::choice, key, label);
  uint8_t* at = made.choices;
  for (const std::string_view name : names) at = std::ranges::copy(name, at).out + 1;
  made.value[0] = static_cast<float>(std::find(names.begin(), names.end(), value) - names.begin());
  return made;
}

ViewControl number(std::string_view key, std::string_view label, float low, float high, float value) {
  ViewControl made = control(ViewControlKind::number, key, label);
  made.low = low;
  made.high = high;
  made.value[0] = value;
  return made;
}

// Its own value is from 0 to 1.
ViewControl range(std::string_view key, std::string_view label, float low, float high) {
  ViewControl made = control(ViewControlKind::range, key, label);
  made.low = low;
  made.high = high;
  made.value[1] = 1;
  return made;
}

} // namespace

std::vector<ViewControl> controls_of(const std::string& mode, const std::string& map, float iso) {
  return {choice("look.mode", "Mode", kModes, mode),
          choice("look.map", "Colours", kColourMaps, map),
          range(kContrastKey, "Contrast", kContrastLow, kContrastHigh),
          number("look.gamma", "Gamma", kGammaLow, kGammaHigh, 1),
          number("look.opacity", "Opacity", 0, 1, 1),
          number("look.iso", "Surface level", kIsoLow, 1, iso),
          range("look.crop_x", "Crop x", 0, 1),
          range("look.crop_y", "Crop y", 0, 1),
          range("look.crop_z", "Crop z", 0, 1)};
}

bool is_contrast(const ViewControl& control) {
  return std::equal(kContrastKey.begin(), kContrastKey.end(), std::begin(control.key));
}

} // namespace millrace::volume
