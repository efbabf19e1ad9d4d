// Folders, extensions and numbered names of output files; see output_path.h.
#include "plugins/opencv/output_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "millrace/nearest.h"
#include "millrace/path_pattern.h"
#include "plugins/opencv/frame_number.h"

namespace millrace::opencv {

namespace {
constexpr std::string_view kIndex = "{index}";
constexpr size_t kIndexDigits = 6; // nine hours of pictures at 30 a second
} // namespace

void make_folders_for(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error("cannot make the folder '" + folder.string() + "': " + error.message());
}

void require_writable_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
  const int cause = errno;
  std::error_code error;
  const std::filesystem::path elsewhere = std::filesystem::temp_directory_path(error);
  throw std::runtime_error(
      "cannot write the picture '" + path + "': its folder may not be written to: " + std::strerror(cause) +
      (error ? "" : "\ntry: path=" + (elsewhere / std::filesystem::path(path).filename()).string()));
}

std::string with_index(const std::string& path) {
  const std::filesystem::path name(path);
  return (name.parent_path() / (name.stem().string() + "-{index}" + name.extension().string())).string();
}

std::string extension_of(const std::string& path) {
  return v1::detail::in_small_letters(std::filesystem::path(path).extension().string());
}

bool has_index(const std::string& pattern) {
  return pattern.find(kIndex, folder_length(pattern)) != std::string::npos || FrameNumber::find(pattern);
}

std::string numbered_path(const std::string& pattern, uint64_t index) {
  const size_t begin = folder_length(pattern);
  if (pattern.find(kIndex, begin) == std::string::npos) {
    const std::optional<FrameNumber> place = FrameNumber::find(pattern);
    return place ? place->path_of(index) : pattern;
  }
  std::string digits = std::to_string(index);
  if (digits.size() < kIndexDigits) digits.insert(0, kIndexDigits - digits.size(), '0');
  std::string path = pattern;
  for (size_t at = path.find(kIndex, begin); at != std::string::npos; at = path.find(kIndex, at + digits.size()))
    path.replace(at, kIndex.size(), digits);
  return path;
}

} // namespace millrace::opencv
