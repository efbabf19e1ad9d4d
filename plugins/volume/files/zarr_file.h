// Volumes of Zarr 2 and 3, by a reader of our own: chunks are decoded in parallel, straight into their place.
#pragma once

#include <memory>
#include <string>

#include "plugins/volume/files/volume_file.h"

namespace millrace::volume {

// Opens an array, or a level of an OME-Zarr group, and looks at every chunk's file. Throws VolumeFileError.
std::unique_ptr<VolumeFile> open_zarr(const std::string& folder, const Wishes& wishes);

} // namespace millrace::volume
