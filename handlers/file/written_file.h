// A file, a pipe or standard output that is written from front to back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "handlers/file/pipe_wait.h"

namespace millrace::handlers {

// "-" is standard output. A FIFO is opened once somebody reads it. Every write is checked; what fails throws
// std::runtime_error with path, reason and the number of bytes that were written before. No write raises a signal.
// interrupt() may come from any thread and ends a wait for a pipe's reader, all else is called by one.
class WrittenFile {
 public:
  WrittenFile() = default;
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;
  ~WrittenFile() { abandon(); }

  // What a regular file held before is gone, and folders on the way are made.
  void open(const std::string& path);
  bool is_open() const { return descriptor_ >= 0; }
  void write(std::span<const uint8_t> bytes);
  // A value is whole: who reads a pipe gets it now. A regular file waits until there is more to write.
  void end_value();
  // Writes what is left. Does nothing where nothing is open.
  void close();
  // Closes without writing what is left.
  void abandon();
  void interrupt() { wait_.interrupt(); }

 private:
  int open_pipe();
  void put(std::span<const uint8_t> bytes);
  void flush();
  [[noreturn]] void fail(const std::string& why);

  std::string path_;
  int descriptor_ = -1;
  bool waits_ = false;  // it is no regular file, and a write may have to wait
  bool shared_ = false; // with whoever gave it to this process, so its flags are left alone
  std::vector<uint8_t> buffer_;
  uint64_t written_ = 0; // bytes
  PipeWait wait_;
};

} // namespace millrace::handlers
