// Lets FFmpeg read bytes from a pipe interruptibly, which FFmpeg's own pipes are not.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/interrupt.h"

namespace millrace::media {

// A FIFO or the standard input. Reads wait in slices, so that an interrupt ends them.
class ByteStream {
 public:
  // "-" is the standard input. The first read of a FIFO waits for a writer. Throws std::system_error if the path cannot
  // be opened. `interrupt` must outlive it.
  ByteStream(const std::string& path, const Interrupt& interrupt);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  AVIOContext* io() { return io_; }
  uint64_t count() const { return count_; } // bytes read so far

 private:
  static int read(void* self, uint8_t* buffer, int size);

  int descriptor_ = -1;
  bool owned_ = false;
  const Interrupt& interrupt_;
  AVIOContext* io_ = nullptr;
  uint64_t count_ = 0;
};

} // namespace millrace::media
