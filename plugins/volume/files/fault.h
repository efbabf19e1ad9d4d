// The sentences about files that cannot be read.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "plugins/volume/files/volume_file.h"

namespace millrace::volume {

// The error "cannot read 'PATH': WHY", for the caller to throw.
VolumeFileError cannot_read(const std::string& path, const std::string& why);
// Why the type of an element, such as "int16", cannot be a voxel's, and which type is the nearest.
std::string wrong_type(std::string_view type);
// Throws an error if a side is not 1 to kSideMax. `key`: the word in the file for the shape.
void check_shape(const std::string& path, const std::string& key, const std::array<int64_t, 3>& shape);
// True if a volume may have such elements.
bool is_voxel_type(DType dtype);
// "512x512x100"
std::string shown(const std::array<int64_t, 3>& shape);

} // namespace millrace::volume
