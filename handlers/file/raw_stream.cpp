// Puts frames together from what comes through a pipe; see raw_stream.h.
#include "handlers/file/raw_stream.h"

namespace millrace::handlers {

void RawStream::open(const std::string& path, uint64_t frame_bytes) {
  stream_.open(path);
  count_ = 0;
  expect(frame_bytes);
}

void RawStream::expect(uint64_t frame_bytes) {
  frame_.resize(frame_bytes);
  filled_ = 0;
  whole_ = false;
}

RawStream::Answer RawStream::next() {
  if (whole_) filled_ = 0;
  whole_ = false;
  while (filled_ < frame_.size()) {
    size_t count = 0;
    switch (stream_.read(frame_.data() + filled_, frame_.size() - filled_, count)) {
      case InputStream::Answer::bytes: filled_ += count; break;
      case InputStream::Answer::end: return Answer::end;
      case InputStream::Answer::interrupted: return Answer::interrupted;
    }
  }
  whole_ = true;
  ++count_;
  return Answer::frame;
}

} // namespace millrace::handlers
