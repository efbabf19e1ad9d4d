// Plain writes with all errors checked; see checked_write.h.
#include "plugins/opencv/checked_write.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "millrace/write_signals.h"

namespace millrace::opencv {

namespace {

// 0, or the errno of the write that failed.
int write_all(int file, std::span<const unsigned char> bytes, size_t& written) {
  const HeldWriteSignals held;
  while (written < bytes.size()) {
    const ssize_t count = ::write(file, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) written += static_cast<size_t>(count);
  }
  return 0;
}

} // namespace

void write_picture_bytes(const std::string& path, std::span<const unsigned char> bytes) {
  const auto refuse = [&](int error, const std::string& where) {
    throw std::runtime_error("cannot write the picture '" + path + "': " + std::strerror(error) + where);
  };
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) refuse(errno, "");
  size_t written = 0;
  int error = write_all(file, bytes, written);
  if (::close(file) != 0 && error == 0) error = errno; // a network file system may report a full disk only now
  if (error != 0) refuse(error, " (at byte " + std::to_string(written) + ")");
}

} // namespace millrace::opencv
