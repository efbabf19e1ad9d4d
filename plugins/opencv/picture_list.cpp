// Patterns of files by glob(3), in the order in which people count; see picture_list.h.
#include "plugins/opencv/picture_list.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>

#include "plugins/opencv/input_path.h"
#include "plugins/opencv/natural_order.h"

namespace millrace::opencv {

namespace {

namespace fs = std::filesystem;

constexpr size_t kFilesMax = 1'000'000; // nine hours at 30 a second; their paths are kept in memory

bool is_regular(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

} // namespace

std::vector<std::string> pictures_of(const std::string& path) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) {
    if (!is_regular(path)) throw cannot_read("picture", path, "it is not a regular file");
    return {path};
  }
  if (path.find_first_of("*?[") == std::string::npos) throw cannot_read("picture", path, "there is no such file");
  glob_t found{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&found, ::globfree);
  const int status = ::glob(path.c_str(), GLOB_NOSORT, nullptr, &found);
  if (status == GLOB_NOSPACE) throw std::bad_alloc();
  if (status == GLOB_ABORTED) throw cannot_read("picture", path, "a folder of the pattern cannot be read");
  std::vector<std::string> files;
  for (size_t i = 0; i < found.gl_pathc; ++i)
    if (is_regular(found.gl_pathv[i])) files.emplace_back(found.gl_pathv[i]);
  if (files.empty()) throw cannot_read("picture", path, "no file matches the pattern");
  if (files.size() > kFilesMax) throw cannot_read("picture", path, "more than a million files match the pattern");
  std::sort(files.begin(), files.end(), natural_less);
  return files;
}

} // namespace millrace::opencv
