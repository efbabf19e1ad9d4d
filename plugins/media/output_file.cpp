// Implements an AVIOContext with checked writes; see output_file.h.
#include "plugins/media/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

#include "plugins/media/quiet_write.h"

namespace millrace::media {

namespace {

constexpr int kWriteBufferBytes = 1 << 18; // about one good picture: few writes a second, little lost in a crash
constexpr int kWriteSliceMs = 20;          // an interrupt is noticed after this at most
constexpr mode_t kMode = 0666;

std::string standard_output_name() { return "standard output"; }

} // namespace

OutputFile::~OutputFile() { abandon(); }

void OutputFile::open(const std::string& path, bool may_replace, const PartFile::Kept& kept) {
  abandon();
  path_ = path;
  failure_.clear();
  position_ = 0;
  bytes_ = 0;
  piece_max_ = 0;
  may_block_ = owns_descriptor_ = holds_lock_ = false;
  struct stat there {};
  if (path == "-") {
    path_ = standard_output_name();
    open_standard_output();
  } else if (stat(path.c_str(), &there) == 0 && S_ISFIFO(there.st_mode)) {
    open_fifo(path);
  } else if (stat(path.c_str(), &there) == 0 && (S_ISCHR(there.st_mode) || S_ISBLK(there.st_mode))) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC, kMode);
    if (descriptor_ < 0) throw std::runtime_error("cannot write '" + path + "': " + std::strerror(errno));
    owns_descriptor_ = true;
    make_io(false);
  } else {
    part_.open(path, may_replace, kept);
    descriptor_ = part_.descriptor();
    make_io(true);
  }
}

void OutputFile::open_fifo(const std::string& path) {
  // Polls for a reader: a blocking open() could not be interrupted, and a non-blocking one fails without a reader.
  for (;;) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor_ >= 0) break;
    if (errno != ENXIO && errno != EINTR)
      throw std::runtime_error("cannot write '" + path + "': " + std::strerror(errno));
    if (interrupted_.load(std::memory_order_relaxed))
      throw std::runtime_error("cannot write '" + path + "': interrupted while it waited for a reader");
    poll(nullptr, 0, kWriteSliceMs);
  }
  owns_descriptor_ = may_block_ = true;
  make_io(false);
}

void OutputFile::open_standard_output() {
  struct stat there {};
  if (fstat(STDOUT_FILENO, &there) != 0)
    throw std::runtime_error(std::string("cannot write to standard output: ") + std::strerror(errno));
  if (S_ISFIFO(there.st_mode)) {
    may_block_ = true;
    // Opened separately, so that O_NONBLOCK does not affect processes that share standard output with this one.
    descriptor_ = ::open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    owns_descriptor_ = descriptor_ >= 0;
  } else if (S_ISSOCK(there.st_mode) || S_ISCHR(there.st_mode)) {
    may_block_ = true;
  }
  if (descriptor_ < 0) {
    descriptor_ = STDOUT_FILENO;
    if (may_block_) piece_max_ = PIPE_BUF; // fits without blocking if poll() reports any room
  }
  make_io(false);
}

void OutputFile::make_io(bool seekable) {
  auto* buffer = static_cast<uint8_t*>(av_malloc(kWriteBufferBytes));
  if (!buffer) throw std::bad_alloc();
  io_ = avio_alloc_context(buffer, kWriteBufferBytes, 1, this, nullptr, &OutputFile::write_packet,
                           seekable ? &OutputFile::seek : nullptr);
  if (!io_) {
    av_free(buffer);
    throw std::bad_alloc();
  }
  io_->seekable = seekable ? AVIO_SEEKABLE_NORMAL : 0;
}

int OutputFile::write_packet(void* self, uint8_t* bytes, int count) {
  return static_cast<OutputFile*>(self)->write_all(bytes, static_cast<size_t>(count));
}

int64_t OutputFile::seek(void* self, int64_t offset, int whence) {
  auto& file = *static_cast<OutputFile*>(self);
  if (whence & AVSEEK_SIZE) {
    struct stat held {};
    return fstat(file.descriptor_, &held) == 0 ? held.st_size : AVERROR(errno);
  }
  const off_t at = lseek(file.descriptor_, offset, whence & ~AVSEEK_FORCE);
  if (at < 0) return AVERROR(errno);
  file.position_ = at;
  return at;
}

int OutputFile::write_all(const uint8_t* bytes, size_t count) {
  if (!failure_.empty()) return AVERROR(EIO);
  // Otherwise a film whose file was deleted would be recorded to its end and then be lost.
  if (part_.is_gone()) {
    failure_ = "cannot write '" + path_ + "': its file '" + part_.part_path() + "' was removed while it was written";
    return AVERROR(ENOENT);
  }
  const size_t all = count;
  while (count > 0) {
    if (may_block_ && !wait_until_writable()) return AVERROR_EXIT;
    const ptrdiff_t written = write_some(descriptor_, bytes, piece_max_ ? std::min(count, piece_max_) : count);
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      may_block_ = true; // standard output that its creator has made non-blocking
      continue;
    }
    if (written < 0) {
      const int error = errno;
      fail(error);
      return AVERROR(error);
    }
    bytes += written;
    count -= static_cast<size_t>(written);
    position_ += written;
    bytes_ += static_cast<uint64_t>(written);
  }
  return static_cast<int>(all);
}

bool OutputFile::wait_until_writable() {
  pollfd waited{descriptor_, POLLOUT, 0};
  const auto begin = std::chrono::steady_clock::now();
  // POLLERR also ends the wait: then the write reports the error.
  while (poll(&waited, 1, kWriteSliceMs) <= 0) {
    if (!interrupted_.load(std::memory_order_relaxed)) continue;
    const auto taken =
        std::chrono::round<std::chrono::duration<int64_t, std::deci>>(std::chrono::steady_clock::now() - begin);
    failure_ = "cannot write '" + path_ + "': interrupted, as its reader has taken nothing for " +
               std::to_string(taken.count() / 10) + "." + std::to_string(taken.count() % 10) + " s (at byte " +
               std::to_string(position_) + ")";
    return false;
  }
  return true;
}

void OutputFile::fail(int error) {
  failure_ = "cannot write '" + path_ + "': " + std::strerror(error) + " (at byte " + std::to_string(position_) + ")";
  if (part_.is_open() && bytes_ > 0) failure_ += "; what was written before is in '" + part_.part_path() + "'";
}

void OutputFile::check() const {
  if (!failure_.empty()) throw std::runtime_error(failure_);
}

void OutputFile::commit() {
  if (!is_open()) return;
  avio_flush(io_);
  check();
  if (part_.is_open()) part_.commit();
  free_io();
  if (part_.is_open()) {
    if (!holds_lock_) part_.close();
  } else if (owns_descriptor_ && ::close(descriptor_) != 0 && errno != EINTR) {
    fail(errno); // a network file system may report a full disk only now
  }
  descriptor_ = -1;
  check();
}

void OutputFile::abandon() {
  if (is_open()) {
    if (io_ && failure_.empty()) avio_flush(io_);
    free_io();
    if (!part_.is_open() && owns_descriptor_) ::close(descriptor_);
  }
  part_.abandon();
  descriptor_ = -1;
}

void OutputFile::free_io() {
  if (!io_) return;
  av_freep(&io_->buffer);
  avio_context_free(&io_);
}

} // namespace millrace::media
