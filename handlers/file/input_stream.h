// Reads bytes that come through a pipe, in a way that another thread can end.
#pragma once

#include <cstddef>
#include <string>

#include "handlers/file/pipe_wait.h"

namespace millrace::handlers {

// True for standard input ("-") and for an existing path that is no regular file. The length of a stream is not known
// before its end, it is read once, and reading waits for the writer. Throws cannot_read if the path is missing or a
// folder.
bool is_stream(const std::string& path);

// interrupt() may be called from any thread and ends a wait; all other functions are called by one thread.
class InputStream {
 public:
  enum class Answer { bytes, end, interrupted };

  InputStream() = default;
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;
  ~InputStream() { close(); }

  // Does not wait: read() waits if no process has opened a FIFO for writing yet. Throws cannot_read.
  void open(const std::string& path);
  bool is_open() const { return descriptor_ >= 0; }
  // Waits for bytes, and reads as many as there are, at most `size`, which is above 0. Throws cannot_read if it fails.
  Answer read(void* target, size_t size, size_t& count);
  void close();
  void interrupt() { wait_.interrupt(); }

 private:
  std::string path_;
  int descriptor_ = -1;
  bool ended_ = false;
  PipeWait wait_;
};

} // namespace millrace::handlers
