// Choice of the three axes of an array that are the volume's, and of the places on the others.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/volume/files/zarr_array.h"

namespace millrace::volume {

struct VolumeAxes {
  std::array<size_t, 3> axis{}; // indices of depth, height and width, rising
  std::vector<int64_t> place;   // for each axis of the array: the chosen index; 0 on the volume's axes
};

// `at`: "t=0,c=1". Axes that it names are dropped. If more than three are left, those of one element that are not named
// z, y or x are dropped too. Then three must be left. Throws VolumeFileError that names the axes.
VolumeAxes choose_axes(const ZarrArray& array, const std::string& at);

} // namespace millrace::volume
