// TIFF and BigTIFF, by libtiff: the pages are the planes of the volume, from the front to the back.
#pragma once

#include <memory>
#include <string>

#include "plugins/volume/files/volume_file.h"

namespace millrace::volume {

// Throws VolumeFileError, also where this build has no libtiff.
std::unique_ptr<VolumeFile> open_tiff(const std::string& path);

} // namespace millrace::volume
