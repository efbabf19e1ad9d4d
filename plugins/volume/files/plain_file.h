// Files that hold the voxels one after another: raw numbers and NPY.
#pragma once

#include <memory>
#include <string>

#include "plugins/volume/files/volume_file.h"

namespace millrace::volume {

// Opens raw numbers as the wishes describe them. Throws VolumeFileError.
std::unique_ptr<VolumeFile> open_raw(const std::string& path, const Wishes& wishes);
// Opens an NPY file. Throws VolumeFileError.
std::unique_ptr<VolumeFile> open_npy(const std::string& path);

} // namespace millrace::volume
