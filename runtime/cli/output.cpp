// See output.h.
#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::cli {

void write_file(const std::string& path, const std::string& text) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int cause = errno;
  if (file && (path == "-" ? std::fflush(file) : std::fclose(file)) != 0) {
    written = false;
    cause = errno;
  }
  if (!written) throw Failure(code::write_failed, "cannot write " + path + ": " + std::strerror(cause));
}

void print_warning(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

} // namespace millrace::cli
