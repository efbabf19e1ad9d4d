// Opens the files of handlers; see open.h.
#include "handlers/file/open.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "millrace/write_signals.h"

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

File open_to_write(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error); // if this fails, fopen reports the reason
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) throw cannot_write(path);
  return file;
}

void write_all(std::FILE* file, std::span<const uint8_t> bytes, const std::string& path) {
  const HeldWriteSignals held;
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) throw cannot_write(path);
}

void close_written(File& file, const std::string& path) {
  const HeldWriteSignals held;
  if (file && std::fclose(file.release()) != 0) throw cannot_write(path);
}

} // namespace millrace::handlers
