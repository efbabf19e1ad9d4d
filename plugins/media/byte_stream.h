// Bytes from a pipe, as FFmpeg reads them: FFmpeg's own pipes cannot be interrupted.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/interrupt.h"

namespace millrace::media {

// A FIFO or the standard input. It waits in slices, so that an interrupt ends it.
class ByteStream {
 public:
  // "-" is the standard input. A FIFO that nobody writes yet is waited for at the first read. Throws std::system_error
  // where it cannot be opened. `interrupt` must outlive it.
  ByteStream(const std::string& path, const Interrupt& interrupt);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  AVIOContext* io() { return io_; }
  uint64_t count() const { return count_; } // bytes that came

 private:
  static int read(void* self, uint8_t* buffer, int size);

  int descriptor_ = -1;
  bool owned_ = false;
  const Interrupt& interrupt_;
  AVIOContext* io_ = nullptr;
  uint64_t count_ = 0;
};

} // namespace millrace::media
