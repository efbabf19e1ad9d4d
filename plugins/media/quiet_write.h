// write() whose failure is a return value and nothing else: no SIGPIPE, no SIGXFSZ, no short count, no EINTR.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>

namespace millrace::media {

// While it lives, a write of this thread that meets a broken pipe or the limit of a file's size raises no signal: the
// two are blocked, and what the writes have left pending is taken away before the thread's mask is put back. A library
// must not change how its host treats signals, so the mask is the thread's, and only for as long as the write takes.
class NoWriteSignals {
 public:
  NoWriteSignals();
  ~NoWriteSignals();
  NoWriteSignals(const NoWriteSignals&) = delete;
  NoWriteSignals& operator=(const NoWriteSignals&) = delete;

 private:
  sigset_t ours_, before_;
  bool pending_before_[2];
};

// Writes once, again after EINTR. Returns how many bytes, or -1 and errno.
ptrdiff_t write_some(int descriptor, const uint8_t* bytes, size_t count);

} // namespace millrace::media
