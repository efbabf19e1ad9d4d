// Keeps the signals of a failed write from the program that a handler is part of.
//
// A write to a pipe without a reader raises SIGPIPE, and a write beyond the limit of a file's size raises SIGXFSZ.
// Either ends the program unless it has arranged otherwise. A handler is a guest in its program: it must not change how
// signals are treated there, and a file that is too large or a reader that left has to become the sentence of an error.
// So a handler that writes files, pipes or sockets does it inside a scope:
//
//   const mr::HeldWriteSignals held;
//   if (::write(file, bytes, count) < 0) throw std::runtime_error(std::strerror(errno)); // EPIPE, EFBIG
#pragma once

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <initializer_list>

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// While it lives, a failed write of this thread returns EPIPE or EFBIG and raises nothing: both signals are blocked in
// the thread, and the destructor removes those that came meanwhile. A signal that was pending before, and a mask that
// blocked them before, stay. Scopes may be nested. errno stays as it is. Costs four system calls.
class HeldWriteSignals {
 public:
  HeldWriteSignals() {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    sigemptyset(&held_);
    for (const int signal : {SIGPIPE, SIGXFSZ})
      if (!sigismember(&pending, signal)) sigaddset(&held_, signal); // a signal that is pending already is not ours
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  HeldWriteSignals(const HeldWriteSignals&) = delete;
  HeldWriteSignals& operator=(const HeldWriteSignals&) = delete;
  ~HeldWriteSignals() {
    const int error = errno;
    const timespec at_once{};
    while (sigtimedwait(&held_, nullptr, &at_once) > 0 || errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  sigset_t held_, before_;
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
