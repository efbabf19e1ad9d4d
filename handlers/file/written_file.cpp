// Writes files and pipes, checks every write and waits for readers; see written_file.h.
#include "handlers/file/written_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "handlers/file/open.h"
#include "millrace/write_signals.h"

namespace millrace::handlers {

namespace {

// Writes are collected up to this size, which is the capacity of a pipe.
constexpr size_t kBufferBytes = 64u << 10;

} // namespace

void WrittenFile::open(const std::string& path) {
  abandon();
  wait_.clear();
  path_ = path;
  written_ = 0;
  has_begun_ = is_new_ = false;
  buffer_.reserve(kBufferBytes);
  struct stat facts {};
  shared_ = path == "-";
  if (shared_) {
    descriptor_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  } else if (::stat(path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode)) {
    descriptor_ = open_pipe();
  } else {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code error;
    if (!folder.empty()) std::filesystem::create_directories(folder, error); // if this fails, open reports the reason
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    is_new_ = descriptor_ >= 0;
    if (!is_new_) descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  }
  if (descriptor_ < 0 || fstat(descriptor_, &facts) != 0) throw cannot_write(path_);
  waits_ = !S_ISREG(facts.st_mode);
}

// Without a reader, a blocking open() would wait, and nothing could end that wait. So the open is retried until it
// succeeds.
int WrittenFile::open_pipe() {
  for (;;) {
    const int descriptor = ::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor >= 0 || errno != ENXIO) return descriptor;
    if (!wait_.slice())
      throw std::runtime_error("cannot write '" + path_ + "': interrupted while it waited for a reader");
  }
}

void WrittenFile::write(std::span<const uint8_t> bytes) {
  if (descriptor_ < 0) throw std::logic_error("'" + path_ + "' is closed");
  begin();
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() >= kBufferBytes) return put(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void WrittenFile::end_value() {
  if (waits_) flush();
}

// A run that ends before its first value leaves the file of the run before. What was passed on is added to.
void WrittenFile::begin() {
  if (waits_ || shared_ || std::exchange(has_begun_, true)) return;
  if (ftruncate(descriptor_, 0) != 0) fail(std::strerror(errno));
}

void WrittenFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void WrittenFile::put(std::span<const uint8_t> bytes) {
  const HeldWriteSignals held;
  while (!bytes.empty()) {
    if (waits_ && !wait_.until(descriptor_, POLLOUT)) fail("interrupted while it waited for its reader");
    // A pipe that can be written has room for PIPE_BUF. O_NONBLOCK cannot be set on a shared one, so it would block on
    // more.
    const size_t piece = waits_ && shared_ ? std::min<size_t>(bytes.size(), PIPE_BUF) : bytes.size();
    const ssize_t count = ::write(descriptor_, bytes.data(), piece);
    if (count < 0 && errno != EAGAIN && errno != EINTR) fail(std::strerror(errno));
    if (count <= 0) continue;
    written_ += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void WrittenFile::write_front(std::span<const uint8_t> bytes) {
  flush();
  if (::lseek(descriptor_, 0, SEEK_SET) != 0) fail(std::strerror(errno));
  put(bytes);
  if (::lseek(descriptor_, 0, SEEK_END) < 0) fail(std::strerror(errno));
}

void WrittenFile::close() {
  if (descriptor_ < 0) return;
  begin();
  flush();
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0 && errno != EINTR) fail(std::strerror(errno)); // a full network disk may show only now
}

void WrittenFile::abandon() {
  buffer_.clear();
  if (descriptor_ < 0) return;
  if (is_new_ && !has_begun_ && !waits_) ::unlink(path_.c_str());
  ::close(descriptor_);
  descriptor_ = -1;
}

void WrittenFile::break_off() noexcept {
  try {
    if (descriptor_ >= 0 && has_begun_ && !waits_) flush();
  } catch (const std::exception&) { // it was closed; the run ends by another failure
  }
  abandon();
}

// Closes the file first: a failed write is not tried again.
void WrittenFile::fail(const std::string& why) {
  abandon();
  throw std::runtime_error("cannot write '" + path_ + "': " + why + " (at byte " + std::to_string(written_) + ")");
}

} // namespace millrace::handlers
