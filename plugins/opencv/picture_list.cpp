// Matches patterns with glob(3) or with a number, in the order in which people count; see picture_list.h.
#include "plugins/opencv/picture_list.h"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <opencv2/imgcodecs.hpp>

#include "millrace/path_pattern.h"
#include "plugins/opencv/frame_number.h"
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

// The files that have a number at the pattern's place, in the order of the numbers.
std::vector<std::string> numbered(const std::string& path, const FrameNumber& pattern) {
  if (pattern.after().find('/') != std::string::npos)
    throw cannot_read("picture", path, "its number is in the name of a folder");
  const std::string folder = pattern.before().substr(0, pattern.before().rfind('/') + 1); // npos + 1 is 0
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? "." : folder, error);
  if (error) throw cannot_read("picture", path, "the folder '" + folder + "': " + error.message());
  std::vector<std::pair<uint64_t, std::string>> found;
  for (const fs::directory_entry& entry : entries) {
    const std::string file = folder + entry.path().filename().string();
    const std::optional<uint64_t> number = pattern.number_of(file);
    if (number && is_regular(file)) found.emplace_back(*number, file);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> files;
  for (auto& [number, file] : found) files.push_back(std::move(file));
  return files;
}

std::vector<std::string> globbed(const std::string& path) {
  glob_t found{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&found, ::globfree);
  const std::string pattern = with_quoted_folder(path, folder_length(path));
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  if (status == GLOB_NOSPACE) throw std::bad_alloc();
  if (status == GLOB_ABORTED) throw cannot_read("picture", path, "a folder of the pattern cannot be read");
  std::vector<std::string> files;
  for (size_t i = 0; i < found.gl_pathc; ++i)
    if (is_regular(found.gl_pathv[i])) files.emplace_back(found.gl_pathv[i]);
  std::sort(files.begin(), files.end(), natural_less);
  return files;
}

// The extension that most of the pictures in a folder have; ".png" if there are none.
std::string extension_in(const std::string& folder) {
  std::error_code error;
  std::map<std::string, size_t> counts{{".png", 0}};
  size_t entries = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && ++entries < kFilesMax;
       entry.increment(error))
    if (is_regular(entry->path()) && cv::haveImageWriter(entry->path())) ++counts[entry->path().extension().string()];
  const auto most = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::max_element(counts.begin(), counts.end(), most)->first;
}

} // namespace

std::vector<std::string> pictures_of(const std::string& path) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) {
    if (is_regular(path)) return {path};
    if (!fs::is_directory(path, error)) throw cannot_read("picture", path, "it is not a regular file");
    const std::string files = path + (path.ends_with('/') ? "*" : "/*") + extension_in(path);
    throw cannot_read("picture", path,
                      "it is a folder; '" + files + "' would give the pictures in it\ntry: path=" + files);
  }
  const std::optional<FrameNumber> number = FrameNumber::find(path);
  if (!number && path.find_first_of("*?[", folder_length(path)) == std::string::npos)
    throw cannot_read("picture", path, error && error.value() != ENOENT ? error.message() : "there is no such file");
  std::vector<std::string> files = number ? numbered(path, *number) : globbed(path);
  if (files.empty()) throw cannot_read("picture", path, "no file matches the pattern");
  if (files.size() > kFilesMax) throw cannot_read("picture", path, "more than a million files match the pattern");
  return files;
}

} // namespace millrace::opencv
