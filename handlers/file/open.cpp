// Opens the files of handlers; see open.h.
#include "handlers/file/open.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace millrace::handlers {

namespace fs = std::filesystem;

std::runtime_error cannot_read(const std::string& path, const std::string& why) {
  return std::runtime_error("cannot read '" + path + "': " + why);
}

std::runtime_error cannot_write(const std::string& path) {
  return std::runtime_error("cannot write '" + path + "': " + std::strerror(errno));
}

File open_to_read(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw cannot_read(path, "there is no such file");
  if (!fs::is_regular_file(status)) throw cannot_read(path, "it is not a regular file");
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) throw cannot_read(path, std::strerror(errno));
  if (size_of(file.get()) == 0) throw cannot_read(path, "the file is empty");
  return file;
}

uint64_t size_of(std::FILE* file) {
  struct stat facts {};
  if (fstat(fileno(file), &facts) != 0) return 0;
  return static_cast<uint64_t>(facts.st_size);
}

} // namespace millrace::handlers
