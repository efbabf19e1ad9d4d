// Thread masks around write(); see quiet_write.h.
#include "plugins/media/quiet_write.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace millrace::media {

namespace {
constexpr int kSignals[2] = {SIGPIPE, SIGXFSZ};
} // namespace

NoWriteSignals::NoWriteSignals() {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  sigemptyset(&ours_);
  for (int i = 0; i < 2; ++i) {
    pending_before_[i] = sigismember(&pending, kSignals[i]) == 1;
    sigaddset(&ours_, kSignals[i]);
  }
  pthread_sigmask(SIG_BLOCK, &ours_, &before_);
}

NoWriteSignals::~NoWriteSignals() {
  const int error = errno;
  sigset_t left;
  sigemptyset(&left);
  // A signal that somebody else sent before is theirs and stays.
  for (int i = 0; i < 2; ++i)
    if (!pending_before_[i]) sigaddset(&left, kSignals[i]);
  const timespec at_once{0, 0};
  while (sigtimedwait(&left, nullptr, &at_once) > 0 || errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

ptrdiff_t write_some(int descriptor, const uint8_t* bytes, size_t count) {
  const NoWriteSignals quiet;
  for (;;) {
    const ssize_t written = ::write(descriptor, bytes, count);
    if (written >= 0 || errno != EINTR) return written;
  }
}

} // namespace millrace::media
