// Lists segment files; see segment_folder.h.
#include "plugins/media/segment_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>

namespace millrace::media {

namespace {

constexpr size_t kFilesMax = 1'000'000;

} // namespace

std::vector<std::string> segments_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::map<std::string, std::vector<std::string>> by_extension;
  size_t count = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string name = path.filename().string();
    if (name.starts_with(".") || path.stem().extension().string().starts_with(".part")) continue;
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || path.extension().empty()) continue;
    if (++count > kFilesMax) throw std::runtime_error("the folder holds more than a million files");
    by_extension[path.extension().string()].push_back(path.string());
  }
  if (error) throw std::runtime_error(error.message());
  std::vector<std::string> files;
  for (auto& [extension, names] : by_extension)
    if (names.size() > files.size()) files = std::move(names);
  if (files.empty()) throw std::runtime_error("the folder holds no files");
  // strverscmp compares runs of digits as numbers.
  std::sort(files.begin(), files.end(),
            [](const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; });
  return files;
}

} // namespace millrace::media
