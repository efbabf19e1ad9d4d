// Opens the files of handlers, and gives all of them the same error messages.
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

// The error "cannot read 'PATH': WHY", for the caller to throw.
std::runtime_error cannot_read(const std::string& path, const std::string& why);
// The error "cannot write 'PATH': " with the reason from errno, for the caller to throw.
std::runtime_error cannot_write(const std::string& path);

// Opens a file to be read from its first byte. It must be a regular file with at least one byte: reading one does not
// block, so its handler has nothing to interrupt. Throws cannot_read.
File open_to_read(const std::string& path);
// The size in bytes of an open file, wherever its position is.
uint64_t size_of(std::FILE* file);

// Opens a file to be written. Its former content is lost, and missing folders are made. Throws cannot_write.
File open_to_write(const std::string& path);
void write_all(std::FILE* file, std::span<const uint8_t> bytes, const std::string& path);
// Writes the buffered rest and closes. Throws cannot_write: a full disk may be reported only here.
void close_written(File& file, const std::string& path);

} // namespace millrace::handlers
