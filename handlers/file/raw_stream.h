// Reads raw frames that come through a pipe, one after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "handlers/file/pipe_wait.h"

namespace millrace::handlers {

// True for standard input ("-") and for an existing path that is no regular file. The length of a stream is not known
// before its end, it is read once, and reading waits for the writer. Throws cannot_read if the path is missing or a
// folder.
bool is_stream(const std::string& path);

// interrupt() may be called from any thread and ends a wait; all other functions are called by one thread.
class RawStream {
 public:
  enum class Answer { frame, end, interrupted };

  RawStream() = default;
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;
  ~RawStream() { close(); }

  // Does not wait: next() waits if no process has opened a FIFO for writing yet. Throws cannot_read.
  void open(const std::string& path, uint64_t frame_bytes);
  bool is_open() const { return descriptor_ >= 0; }
  // Reads the next whole frame. After an interrupt the next call continues within the same frame. Throws cannot_read if
  // reading fails.
  Answer next();
  const std::vector<uint8_t>& frame() const { return frame_; }
  // Frames read so far, and at the end the bytes of a frame that was cut off.
  uint64_t count() const { return count_; }
  uint64_t rest() const { return filled_; }
  void close();
  void interrupt() { wait_.interrupt(); }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::vector<uint8_t> frame_;
  uint64_t filled_ = 0; // bytes of the current frame read so far
  uint64_t count_ = 0;
  bool whole_ = false; // the frame was given out; the next one overwrites it
  bool ended_ = false;
  PipeWait wait_;
};

} // namespace millrace::handlers
