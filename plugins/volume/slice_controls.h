// The controls that volume.slice offers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/payload/view.h"
#include "plugins/volume/contrast.h"
#include "plugins/volume/slab.h"

namespace millrace::volume {

inline constexpr size_t kSliceControls = 5;

// The slice that is shown when the controls are made.
struct SliceState {
  Axis axis;
  int32_t position, planes; // the place on the axis, and how many there are
  Contrast first_contrast;
  float least, greatest; // values of the middle plane
  std::string colour_map;
};

// `values`: of the plane that is shown, for the histogram; those that are no numbers do not count.
std::vector<ViewControl> slice_controls(const SliceState& state, const std::vector<float>& values);

} // namespace millrace::volume
