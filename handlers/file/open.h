// Opens the files of handlers, and says in one way what is wrong with a file that cannot be read or written.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace millrace::handlers {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// "cannot read 'PATH': WHY", to be thrown.
std::runtime_error cannot_read(const std::string& path, const std::string& why);
// "cannot write 'PATH': ", and what errno says.
std::runtime_error cannot_write(const std::string& path);

// A file to be read from its first byte. Regular files with at least one byte only: reading one does not block, which
// is why its handler has nothing to interrupt. Throws cannot_read.
File open_to_read(const std::string& path);
// Bytes of an open file, wherever it is read.
uint64_t size_of(std::FILE* file);

// A file to be written; what it held before is gone, and folders on the way are made. Throws cannot_write.
File open_to_write(const std::string& path);
void write_all(std::FILE* file, std::span<const uint8_t> bytes, const std::string& path);
// Writes what is still in memory. Throws cannot_write: a full disk may be told here at last.
void close_written(File& file, const std::string& path);

} // namespace millrace::handlers
