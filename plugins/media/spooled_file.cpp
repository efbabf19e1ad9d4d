// Uses O_TMPFILE, or a name that is removed at once; see spooled_file.h.
#include "plugins/media/spooled_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "plugins/media/quiet_write.h"

namespace millrace::media {

namespace {

constexpr int kPieceBytes = 1 << 16;

std::runtime_error cannot_keep(int error) {
  return std::runtime_error(std::string("it cannot be kept in a temporary file: ") + std::strerror(error));
}

} // namespace

SpooledFile::SpooledFile() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  if (error) throw cannot_keep(error.value());
  descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  std::string name = folder + "/millrace-XXXXXX"; // a file system without O_TMPFILE
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) throw cannot_keep(errno);
  ::unlink(name.c_str());
}

SpooledFile::~SpooledFile() { ::close(descriptor_); }

int SpooledFile::fill(AVIOContext& from, uint64_t bytes_max) {
  std::vector<uint8_t> piece(kPieceBytes);
  for (uint64_t bytes = 0;;) {
    const int count = avio_read_partial(&from, piece.data(), kPieceBytes);
    if (count == AVERROR_EOF || count == 0) return 0;
    if (count < 0) return count;
    bytes += static_cast<uint64_t>(count);
    if (bytes > bytes_max) return AVERROR(EFBIG);
    for (size_t at = 0; at < static_cast<size_t>(count);) {
      const ptrdiff_t written = write_some(descriptor_, piece.data() + at, static_cast<size_t>(count) - at);
      if (written < 0) throw cannot_keep(errno);
      at += static_cast<size_t>(written);
    }
  }
}

std::string SpooledFile::url() const { return "file:/proc/self/fd/" + std::to_string(descriptor_); }

} // namespace millrace::media
