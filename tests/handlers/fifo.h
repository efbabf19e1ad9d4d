// FIFOs for tests of handlers that read and write pipes.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "millrace/testing.h"
#include "scratch.h"

namespace millrace::handlers {

inline std::string fifo(const ScratchFolder& folder) {
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  return folder / "fifo";
}

// Writes to a FIFO in a thread of its own, as another program would. The reader must have opened it: if an older reader
// keeps the FIFO open, a writer could come and go before, and a reader that opens later is told of no end.
inline std::thread feeder(const std::string& path, const std::string& bytes) {
  return std::thread([path, bytes] {
    const int pipe = open(path.c_str(), O_WRONLY);
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t count = write(pipe, bytes.data() + at, bytes.size() - at);
      if (count <= 0) break;
      at += static_cast<size_t>(count);
    }
    close(pipe);
  });
}

// Runs `call` in a thread and interrupts the handler until it has returned; an interrupt before the wait is lost.
template <class Call>
void interrupted(testing::TableTest& test, const Call& call) {
  std::atomic<bool> done = false;
  std::thread caller([&] {
    call();
    done = true;
  });
  while (!done) {
    test.interrupt();
    std::this_thread::yield();
  }
  caller.join();
}

} // namespace millrace::handlers
