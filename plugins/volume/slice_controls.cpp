// Controls of a slice; see slice_controls.h.
#include "plugins/volume/slice_controls.h"

#include <algorithm>
#include <initializer_list>

#include "plugins/volume/colour_maps.h"
#include "plugins/volume/wishes.h"

namespace millrace::volume {

namespace {

ViewControl control(ViewControlKind kind, const char* key, const char* label) {
  ViewControl control;
  control.kind = static_cast<int32_t>(kind);
  write_text(key, control.key);
  write_text(label, control.label);
  return control;
}

ViewControl choice(const char* key, const char* label, std::initializer_list<const char*> names, size_t chosen) {
  ViewControl made = control(ViewControlKind::choice, key, label);
  auto* to = made.choices;
  for (const std::string name : names) to = std::copy(name.begin(), name.end(), to) + 1;
  made.high = static_cast<float>(names.size() - 1);
  made.step = 1;
  made.value[0] = static_cast<float>(chosen);
  return made;
}

ViewControl number(const char* key, const char* label, float low, float high, float step, float value) {
  ViewControl made = control(ViewControlKind::number, key, label);
  made.low = low;
  made.high = high;
  made.step = step;
  made.value[0] = value;
  return made;
}

// From the least to the greatest value of the middle plane, in parts of the first contrast, which lies between them.
ViewControl contrast(const SliceState& state, const std::vector<float>& values) {
  const float range = std::max(state.first_contrast.high - state.first_contrast.low, 1e-20F);
  ViewControl made = control(ViewControlKind::range, "look.contrast", "contrast");
  constexpr float kMost = 1e6F; // a look's low and high end there
  made.low = std::clamp((state.least - state.first_contrast.low) / range, -kMost, 0.0F);
  made.high = std::clamp((state.greatest - state.first_contrast.low) / range, 1.0F, kMost);
  made.value[1] = 1;
  constexpr auto kParts = static_cast<float>(ViewControl::kParts);
  for (const float value : values) {
    const float part = ((value - state.first_contrast.low) / range - made.low) / (made.high - made.low) * kParts;
    if (part >= 0 && part <= kParts) ++made.histogram[std::min(static_cast<size_t>(part), ViewControl::kParts - 1)];
  }
  return made;
}

} // namespace

std::vector<ViewControl> slice_controls(const SliceState& state, const std::vector<float>& values) {
  const auto map = std::find(kColourMaps.begin(), kColourMaps.end(), state.colour_map) - kColourMaps.begin();
  return {
      choice("dims.axis", "axis", {"z", "y", "x"}, static_cast<size_t>(state.axis)),
      number("dims.step", "position", 0, static_cast<float>(state.planes - 1), 1, static_cast<float>(state.position)),
      contrast(state, values), number("look.gamma", "gamma", 0.2F, 5, 0, 1),
      choice("look.map", "colours", kColourMaps, static_cast<size_t>(map))};
}

} // namespace millrace::volume
