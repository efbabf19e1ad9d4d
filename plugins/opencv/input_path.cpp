// Checks paths of input files; see input_path.h.
#include "plugins/opencv/input_path.h"

#include <filesystem>
#include <system_error>

namespace millrace::opencv {

namespace fs = std::filesystem;

std::runtime_error cannot_read(const std::string& kind, const std::string& path, const std::string& why) {
  return std::runtime_error("cannot read the " + kind + " '" + path + "': " + why);
}

uint64_t size_of_input(const std::string& kind, const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw cannot_read(kind, path, "there is no such file");
  if (!fs::is_regular_file(status)) throw cannot_read(kind, path, "it is not a regular file");
  const uintmax_t size = fs::file_size(path, error);
  if (error) throw cannot_read(kind, path, error.message());
  if (size == 0) throw cannot_read(kind, path, "the file is empty");
  return size;
}

} // namespace millrace::opencv
