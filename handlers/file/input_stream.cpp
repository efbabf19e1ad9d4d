// Opens and reads pipes; see input_stream.h.
#include "handlers/file/input_stream.h"

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

void InputStream::open(const std::string& path) {
  close();
  wait_.clear();
  path_ = path;
  ended_ = false;
  // Without O_NONBLOCK, open() of a FIFO would wait for its writer, and nothing could end that wait.
  descriptor_ = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                            : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor_ < 0) throw cannot_read(path, std::strerror(errno));
}

InputStream::Answer InputStream::read(void* target, size_t size, size_t& count) {
  count = 0;
  while (!ended_) { // a FIFO may find another writer later
    if (!wait_.until(descriptor_, POLLIN)) return Answer::interrupted;
    const ssize_t got = ::read(descriptor_, target, size);
    if (got < 0 && errno != EAGAIN && errno != EINTR) throw cannot_read(path_, std::strerror(errno));
    ended_ = got == 0;
    if (got <= 0) continue;
    count = static_cast<size_t>(got);
    return Answer::bytes;
  }
  return Answer::end;
}

void InputStream::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

} // namespace millrace::handlers
