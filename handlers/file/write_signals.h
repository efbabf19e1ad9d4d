// Keeps the signals of a failed write from the program that this library is part of.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace millrace::handlers {

// While it lives, a write of this thread to a pipe without a reader, or above the file size limit, returns EPIPE or
// EFBIG and raises nothing: both signals are held back, and those that came meanwhile are taken away at the end. Errno
// stays as it is.
class HeldWriteSignals {
 public:
  HeldWriteSignals() {
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&held_);
    for (const int signal : {SIGPIPE, SIGXFSZ})
      if (!sigismember(&pending, signal)) sigaddset(&held_, signal); // one that waits already is not ours
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  HeldWriteSignals(const HeldWriteSignals&) = delete;
  HeldWriteSignals& operator=(const HeldWriteSignals&) = delete;
  ~HeldWriteSignals() {
    const int error = errno;
    const timespec at_once{};
    while (sigtimedwait(&held_, nullptr, &at_once) > 0) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  sigset_t held_, before_;
};

} // namespace millrace::handlers
