// Opens, reads and maps a file; see input_file.h.
#include "plugins/volume/files/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "plugins/volume/files/fault.h"

namespace millrace::volume {

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO would be waited for
  if (file_ < 0) throw cannot_read(path_, errno == ENOENT ? "there is no such file" : std::strerror(errno));
  struct stat facts {};
  const bool is_known = ::fstat(file_, &facts) == 0;
  if (!is_known || !S_ISREG(facts.st_mode) || facts.st_size == 0) {
    ::close(file_);
    throw cannot_read(path_, is_known && S_ISREG(facts.st_mode) ? "the file is empty" : "it is not a regular file");
  }
  size_ = static_cast<uint64_t>(facts.st_size);
}

InputFile::~InputFile() { ::close(file_); }

void InputFile::read_at(uint64_t offset, std::span<uint8_t> target) const {
  for (size_t at = 0; at < target.size();) {
    const ssize_t count = ::pread(file_, target.data() + at, target.size() - at, static_cast<off_t>(offset + at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw cannot_read(path_, std::strerror(errno));
    if (count == 0) throw cannot_read(path_, "it breaks off at byte " + std::to_string(offset + at));
    at += static_cast<size_t>(count);
  }
}

std::vector<uint8_t> InputFile::first_bytes(size_t count) const {
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min<uint64_t>(count, size_)));
  read_at(0, bytes);
  return bytes;
}

std::shared_ptr<const uint8_t> InputFile::map() const {
  const size_t size = size_;
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_, 0);
  if (begin == MAP_FAILED) throw cannot_read(path_, std::string("it cannot be mapped: ") + std::strerror(errno));
  return {static_cast<const uint8_t*>(begin), [begin, size](const uint8_t*) { ::munmap(begin, size); }};
}

} // namespace millrace::volume
