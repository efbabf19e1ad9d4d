// Controls of a slice; see slice_controls.h.
#include "plugins/volume/slice_controls.h"

#include <algorithm>

#include "plugins/volume/colour_maps.h"
#include "plugins/volume/limits.h"
#include "plugins/volume/make_control.h"

namespace millrace::volume {

namespace {

// From the least to the greatest value of the middle plane, in parts of the first contrast, which lies between them.
ViewControl contrast(const SliceState& state, const std::vector<float>& values) {
  const float range = std::max(state.first_contrast.high - state.first_contrast.low, 1e-20F);
  const auto part_of = [&](float value) { return (value - state.first_contrast.low) / range; };
  ViewControl made =
      make_range("look.contrast", "contrast", Limits{contrast_limits().least, 0}.nearest(part_of(state.least)),
                 Limits{1, contrast_limits().most}.nearest(part_of(state.greatest)));
  constexpr auto kParts = static_cast<float>(ViewControl::kParts);
  for (const float value : values) {
    const float part = (part_of(value) - made.low) / (made.high - made.low) * kParts;
    if (part >= 0 && part <= kParts) ++made.histogram[std::min(static_cast<size_t>(part), ViewControl::kParts - 1)];
  }
  return made;
}

} // namespace

std::vector<ViewControl> slice_controls(const SliceState& state, const std::vector<float>& values) {
  ViewControl step =
      make_number("dims.step", "position", 0, static_cast<float>(state.planes - 1), static_cast<float>(state.position));
  step.step = 1;
  return {make_choice("dims.axis", "axis", {"z", "y", "x"}, static_cast<size_t>(state.axis)), step,
          contrast(state, values), make_number("look.gamma", "gamma", 0.2F, 5, 1),
          make_choice("look.map", "colours", kColourMaps, place_of(state.colour_map, kColourMaps))};
}

} // namespace millrace::volume
