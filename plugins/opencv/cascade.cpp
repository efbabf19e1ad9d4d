// Searches the usual places of cascades; see cascade.h.
#include "plugins/opencv/cascade.h"

#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace millrace::opencv {

namespace {

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

} // namespace

std::vector<std::string> cascade_folders() {
  std::vector<std::string> folders;
  for (const char* root : {"/usr/share/opencv4", "/usr/local/share/opencv4", "/usr/share/opencv", "/usr/share/OpenCV"})
    for (const char* kind : {"haarcascades", "lbpcascades"}) folders.push_back(std::string(root) + "/" + kind);
  return folders;
}

std::string find_cascade(const std::string& cascade, const std::vector<std::string>& folders) {
  if (is_file(cascade)) return cascade;
  if (cascade.ends_with(".xml")) throw std::runtime_error("there is no cascade file '" + cascade + "'");
  const std::string name = std::filesystem::path(cascade).filename().string();
  std::string places;
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + name + ".xml";
    if (is_file(path)) return path;
    places += (places.empty() ? "" : ", ") + folder;
  }
  throw std::runtime_error("there is no cascade '" + cascade + "' in " + places +
                           "; on Debian `apt-get install opencv-data` brings the usual ones, else `cascade` may be the "
                           "path of a file");
}

} // namespace millrace::opencv
