// Raw frames that come through a pipe, one after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "handlers/file/pipe_wait.h"

namespace millrace::handlers {

// True for standard input ("-") and for what is there and no regular file: its length is not known before its end, it
// is read once, and reading waits for whoever writes. Throws cannot_read where the path is missing or a folder.
bool is_stream(const std::string& path);

// interrupt() may come from any thread and ends a wait, all else is called by one.
class RawStream {
 public:
  enum class Answer { frame, end, interrupted };

  RawStream() = default;
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;
  ~RawStream() { close(); }

  // Does not wait: a FIFO that nobody has opened for writing yet is waited for in next(). Throws cannot_read.
  void open(const std::string& path, uint64_t frame_bytes);
  bool is_open() const { return descriptor_ >= 0; }
  // Reads the next whole frame; after an interrupt it goes on where it was. Throws cannot_read where reading fails.
  Answer next();
  const std::vector<uint8_t>& frame() const { return frame_; }
  // Frames so far, and at the end the bytes of one that was cut off.
  uint64_t count() const { return count_; }
  uint64_t rest() const { return filled_; }
  void close();
  void interrupt() { wait_.interrupt(); }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::vector<uint8_t> frame_;
  uint64_t filled_ = 0; // bytes of the frame that have come
  uint64_t count_ = 0;
  bool whole_ = false; // the frame was given, the next one overwrites it
  bool ended_ = false;
  PipeWait wait_;
};

} // namespace millrace::handlers
