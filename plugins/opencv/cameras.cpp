// Finds cameras through Video4Linux; see cameras.h.
#include "plugins/opencv/cameras.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "plugins/opencv/natural_order.h"

namespace millrace::opencv {

namespace {

namespace fs = std::filesystem;

std::string sentence_of(const std::vector<Camera>& cameras, const CameraFolders& folders) {
  if (cameras.empty()) return "this machine has no camera (none in " + folders.list + ")";
  std::string sentence = "there are: ";
  for (const Camera& camera : cameras) {
    if (&camera != &cameras[0]) sentence += ", ";
    sentence += camera.path + (camera.name.empty() ? "" : " (" + camera.name + ")");
  }
  return sentence;
}

// The system's error when the device is opened; "" if it opens.
std::string opening_error(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (file >= 0) {
    ::close(file);
    return "";
  }
  const int code = errno;
  const std::string why = std::generic_category().message(code);
  return code == EACCES ? why + "; members of the group 'video' may" : why;
}

} // namespace

std::vector<Camera> cameras_in(const CameraFolders& folders) {
  std::vector<Camera> cameras;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folders.list, error)) {
    const std::string device = entry.path().filename();
    if (!device.starts_with("video")) continue; // radios and text receivers are listed too
    Camera camera{folders.devices + "/" + device, ""};
    std::ifstream name(entry.path() / "name");
    std::getline(name, camera.name);
    cameras.push_back(std::move(camera));
  }
  std::sort(cameras.begin(), cameras.end(),
            [](const Camera& a, const Camera& b) { return natural_less(a.path, b.path); });
  return cameras;
}

std::string camera_path(const std::string& device, const CameraFolders& folders) {
  const bool is_index = !device.empty() && device.find_first_not_of("0123456789") == std::string::npos;
  return is_index ? folders.devices + "/video" + device : device;
}

std::string camera_refusal(const std::string& path, const CameraFolders& folders) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return "there is no camera '" + path + "'; " + sentence_of(cameras_in(folders), folders);
  if (!fs::is_character_file(status))
    return "'" + path + "' is a file, not a camera; " + sentence_of(cameras_in(folders), folders);
  const std::string why = opening_error(path);
  if (!why.empty()) return "the camera '" + path + "' cannot be opened: " + why;
  return "";
}

} // namespace millrace::opencv
