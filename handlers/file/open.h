// Opens the files of handlers, and gives all of them the same error messages.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
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

} // namespace millrace::handlers
