// Calls poll() in slices before each read; see byte_stream.h.
#include "plugins/media/byte_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace millrace::media {

namespace {
constexpr int kReadBufferBytes = 256 * 1024; // a pipe holds 64 KiB; fewer looks at the clock for large pictures
constexpr int kReadSliceMs = 50;             // an interrupt is noticed after this at most
} // namespace

ByteStream::ByteStream(const std::string& path, const Interrupt& interrupt) : interrupt_(interrupt) {
  owned_ = path != "-";
  descriptor_ = owned_ ? ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC) : STDIN_FILENO;
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category());
  auto* buffer = static_cast<uint8_t*>(av_malloc(kReadBufferBytes));
  io_ = buffer ? avio_alloc_context(buffer, kReadBufferBytes, 0, this, &ByteStream::read, nullptr, nullptr) : nullptr;
  if (io_) return;
  av_free(buffer);
  if (owned_) ::close(descriptor_);
  throw std::bad_alloc();
}

ByteStream::~ByteStream() {
  av_freep(&io_->buffer); // FFmpeg may have replaced it since
  avio_context_free(&io_);
  if (owned_) ::close(descriptor_);
}

int ByteStream::read(void* self, uint8_t* buffer, int size) {
  ByteStream& stream = *static_cast<ByteStream*>(self);
  for (;;) {
    if (stream.interrupt_.why() != Interrupt::Why::none) return AVERROR_EXIT;
    // poll() reports nothing for a FIFO whose first writer has not come. After the last writer has gone, read() finds
    // the end.
    pollfd watched{stream.descriptor_, POLLIN, 0};
    const int ready = ::poll(&watched, 1, kReadSliceMs);
    if (ready < 0 && errno != EINTR) return AVERROR(errno);
    if (ready <= 0) continue;
    const ssize_t count = ::read(stream.descriptor_, buffer, static_cast<size_t>(size));
    if (count > 0) stream.count_ += static_cast<uint64_t>(count);
    if (count > 0) return static_cast<int>(count);
    if (count == 0) return AVERROR_EOF;
    if (errno != EAGAIN && errno != EINTR) return AVERROR(errno);
  }
}

} // namespace millrace::media
