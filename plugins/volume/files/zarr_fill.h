// The fill value of a Zarr's array: the element that chunks without a file consist of.
#pragma once

#include <array>
#include <cstdint>

#include "plugins/volume/files/metadata.h"

namespace millrace::volume {

// One element in this machine's byte order, from `fill_value`; null stands for 0. Throws VolumeFileError if it is no
// number of the type.
std::array<uint8_t, 4> zarr_fill(const Metadata& metadata, DType dtype);

} // namespace millrace::volume
