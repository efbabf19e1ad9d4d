// The answer to a TIFF where the build found no libtiff.
#include "plugins/volume/files/fault.h"
#include "plugins/volume/files/tiff_file.h"

namespace millrace::volume {

std::unique_ptr<VolumeFile> open_tiff(const std::string& path) {
  throw cannot_read(path, "it is a TIFF, and this millrace was built without libtiff 4.5 (libtiff-dev)");
}

} // namespace millrace::volume
