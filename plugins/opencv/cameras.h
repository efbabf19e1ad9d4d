// Lists a machine's cameras, and explains why one cannot be used.
#pragma once

#include <string>
#include <vector>

namespace millrace::opencv {

struct Camera {
  std::string path; // /dev/video0
  std::string name; // as the driver says; may be empty
};

// The folders in which Linux lists its cameras and keeps their devices. Tests use other folders.
struct CameraFolders {
  std::string list = "/sys/class/video4linux", devices = "/dev";
};

// All cameras, in natural order of their paths. A camera may be listed several times: drivers list one device for
// pictures and others for metadata.
std::vector<Camera> cameras_in(const CameraFolders& folders);

// "2" → "/dev/video2"; a path stays as it is.
std::string camera_path(const std::string& device, const CameraFolders& folders);

// The reason why the camera at `path` cannot be opened, with the cameras that there are; "" if it can be opened.
std::string camera_refusal(const std::string& path, const CameraFolders& folders);

} // namespace millrace::opencv
