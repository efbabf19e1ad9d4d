// Signals of a failed write stay inside the scope, and a signal that was pending before stays pending.
#include "millrace/write_signals.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace {

std::atomic<int> raised = 0;

// Counts both signals in place of being ended by them.
class Counted {
 public:
  Counted() : pipe_(signal(SIGPIPE, &count)), size_(signal(SIGXFSZ, &count)) { raised = 0; }
  ~Counted() {
    signal(SIGPIPE, pipe_);
    signal(SIGXFSZ, size_);
  }

 private:
  static void count(int) { ++raised; }
  void (*pipe_)(int);
  void (*size_)(int);
};

// Errno of a byte written into a pipe that nobody reads.
int write_into_broken_pipe() {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  close(ends[0]);
  const ssize_t written = write(ends[1], "x", 1);
  const int error = written < 0 ? errno : 0;
  close(ends[1]);
  return error;
}

// Errno of a byte written beyond the limit of a file's size.
int write_beyond_limit() {
  std::string path = "/tmp/millrace-write-signals-XXXXXX";
  const int file = mkstemp(path.data());
  REQUIRE(file >= 0);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &none);
  const ssize_t written = write(file, "x", 1);
  const int error = written < 0 ? errno : 0;
  setrlimit(RLIMIT_FSIZE, &before);
  close(file);
  unlink(path.c_str());
  return error;
}

bool is_blocked(int number) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, number) == 1;
}

bool is_pending(int number) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, number) == 1;
}

} // namespace

TEST_CASE("a write that fails inside the scope is an error and no signal; outside it is both") {
  const Counted counted;
  CHECK(write_into_broken_pipe() == EPIPE);
  CHECK(write_beyond_limit() == EFBIG);
  CHECK(raised == 2);
  {
    const millrace::HeldWriteSignals held;
    CHECK(write_into_broken_pipe() == EPIPE);
    CHECK(write_beyond_limit() == EFBIG);
    {
      const millrace::HeldWriteSignals inner;
      CHECK(write_into_broken_pipe() == EPIPE);
    }
    CHECK(is_blocked(SIGPIPE)); // the outer one goes on
    CHECK(write_into_broken_pipe() == EPIPE);
    errno = ENOSPC;
  }
  CHECK(errno == ENOSPC);
  CHECK(raised == 2);
  CHECK(!is_blocked(SIGPIPE));
  CHECK(!is_blocked(SIGXFSZ));
}

TEST_CASE("a signal that waited before the scope waits after it, and a mask that blocked it does so again") {
  const Counted counted;
  sigset_t both, before;
  sigemptyset(&both);
  sigaddset(&both, SIGPIPE);
  sigaddset(&both, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &both, &before);
  raise(SIGPIPE);
  {
    const millrace::HeldWriteSignals held;
    CHECK(write_into_broken_pipe() == EPIPE);
    CHECK(write_beyond_limit() == EFBIG);
  }
  CHECK(is_pending(SIGPIPE));
  CHECK(!is_pending(SIGXFSZ));
  CHECK(is_blocked(SIGPIPE));
  CHECK(is_blocked(SIGXFSZ));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(raised == 1);
}
