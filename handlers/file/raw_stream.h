// Reads raw frames that come through a pipe, one after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "handlers/file/input_stream.h"

namespace millrace::handlers {

// interrupt() may be called from any thread and ends a wait; all other functions are called by one thread.
class RawStream {
 public:
  enum class Answer { frame, end, interrupted };

  // Does not wait: next() waits if no process has opened a FIFO for writing yet. Throws cannot_read.
  void open(const std::string& path, uint64_t frame_bytes);
  bool is_open() const { return stream_.is_open(); }
  // The size of the frames that follow, from the next one on.
  void expect(uint64_t frame_bytes);
  // Reads the next whole frame. After an interrupt the next call continues within the same frame. Throws cannot_read if
  // reading fails.
  Answer next();
  const std::vector<uint8_t>& frame() const { return frame_; }
  // Frames read so far, and at the end the bytes of a frame that was cut off.
  uint64_t count() const { return count_; }
  uint64_t rest() const { return filled_; }
  void close() { stream_.close(); }
  void interrupt() { stream_.interrupt(); }

 private:
  InputStream stream_;
  std::vector<uint8_t> frame_;
  uint64_t filled_ = 0; // bytes of the current frame read so far
  uint64_t count_ = 0;
  bool whole_ = false; // the frame was given out; the next one overwrites it
};

} // namespace millrace::handlers
