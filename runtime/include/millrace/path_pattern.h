// Patterns of file names: the part of a path that none can be in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// The length of the beginning of `path`, up to and with a '/', that names a folder which is there. Such a folder may be
// called anything, "shots [1]" or "take %d": a pattern or a place for a number begins after it. 0 if there is none.
// Looks at the disk only if the path has letters in its folders that a pattern may have.
inline size_t folder_length(const std::string& path) {
  const size_t last = path.rfind('/');
  if (last == std::string::npos) return 0;
  if (path.find_first_of("*?[]{}%\\") > last) return last + 1;
  std::error_code missing;
  for (size_t end = last; end != std::string::npos && end > 0; end = path.rfind('/', end - 1))
    if (std::filesystem::is_directory(path.substr(0, end), missing)) return end + 1;
  return path[0] == '/' ? 1 : 0;
}

// `path` for glob(3) and fnmatch(3), where its first `length` bytes stand for themselves.
inline std::string with_quoted_folder(const std::string& path, size_t length) {
  std::string pattern;
  for (size_t i = 0; i < path.size(); ++i) {
    if (i < length && std::string_view("*?[]\\").find(path[i]) != std::string_view::npos) pattern += '\\';
    pattern += path[i];
  }
  return pattern;
}

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
