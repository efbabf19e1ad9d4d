// Writes a file, a pipe or standard output from front to back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "handlers/file/pipe_wait.h"

namespace millrace::handlers {

// "-" is standard output. A FIFO is opened once it has a reader. Every write is checked; a failure throws
// std::runtime_error with the path, the reason and the number of bytes written before. No write raises a signal.
// interrupt() may be called from any thread and ends a wait for a pipe's reader; all other functions are called by one
// thread.
class WrittenFile {
 public:
  WrittenFile() = default;
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;
  ~WrittenFile() { abandon(); }

  // Missing folders are made. A regular file loses its former content once something is written, or is closed.
  void open(const std::string& path);
  bool is_open() const { return descriptor_ >= 0; }
  void write(std::span<const uint8_t> bytes);
  // Marks the end of a value: a pipe's reader gets it now. A regular file is written later, when more has been
  // collected.
  void end_value();
  // Writes what was collected: a reader of a regular file has it now.
  void flush();
  // Writes over the first bytes of a regular file, as many as there are.
  void write_front(std::span<const uint8_t> bytes);
  // Writes the buffered rest and closes. Does nothing if nothing is open.
  void close();
  // Closes without writing the buffered rest. A file that open() has made is gone if nothing was written.
  void abandon();
  // The run has broken off: a regular file keeps what was collected, if it can. Nothing is waited for.
  void break_off() noexcept;
  void interrupt() { wait_.interrupt(); }

 private:
  int open_pipe();
  void begin();
  void put(std::span<const uint8_t> bytes);
  [[noreturn]] void fail(const std::string& why);

  std::string path_;
  int descriptor_ = -1;
  bool waits_ = false;                      // not a regular file, so a write may have to wait
  bool has_begun_ = false, is_new_ = false; // a regular file: it was emptied; it was not there before
  bool shared_ = false;                     // shared with the process that passed it on, so its flags are left alone
  std::vector<uint8_t> buffer_;
  uint64_t written_ = 0; // bytes
  PipeWait wait_;
};

} // namespace millrace::handlers
