// Reads raw frames from pipes so that a wait can be interrupted; see raw_stream.h.
#include "handlers/file/raw_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "handlers/file/open.h"

namespace millrace::handlers {

bool is_stream(const std::string& path) {
  namespace fs = std::filesystem;
  if (path == "-") return true;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw cannot_read(path, "there is no such file");
  if (error) throw cannot_read(path, error.message());
  if (fs::is_directory(status)) throw cannot_read(path, "it is a folder");
  return !fs::is_regular_file(status);
}

void RawStream::open(const std::string& path, uint64_t frame_bytes) {
  close();
  wait_.clear();
  path_ = path;
  // Without O_NONBLOCK, open() of a FIFO would wait for its writer, and nothing could end that wait.
  descriptor_ = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                            : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor_ < 0) throw cannot_read(path, std::strerror(errno));
  frame_.resize(frame_bytes);
  filled_ = count_ = 0;
  whole_ = ended_ = false;
}

RawStream::Answer RawStream::next() {
  if (ended_) return Answer::end; // a FIFO may find another writer later
  if (whole_) filled_ = 0;
  whole_ = false;
  while (filled_ < frame_.size()) {
    if (!wait_.until(descriptor_, POLLIN)) return Answer::interrupted;
    const ssize_t count = ::read(descriptor_, frame_.data() + filled_, frame_.size() - filled_);
    if (count < 0 && errno != EAGAIN && errno != EINTR) throw cannot_read(path_, std::strerror(errno));
    ended_ = count == 0;
    if (ended_) return Answer::end;
    if (count > 0) filled_ += static_cast<uint64_t>(count);
  }
  whole_ = true;
  ++count_;
  return Answer::frame;
}

void RawStream::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

} // namespace millrace::handlers
