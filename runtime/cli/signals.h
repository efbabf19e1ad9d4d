// SIGINT and SIGTERM: the first drains the run, the second ends the process.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "exec/run.h"

namespace millrace::cli {

// Takes both signals from its construction on, in a thread of its own, so that nothing is done inside a signal handler.
// To be made before any other thread: threads inherit that the signals are not theirs.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // A run is about to start: the first signal is kept for it. Before, and after detach(), a signal ends the process at
  // once: there is nothing to drain.
  void expect_run();
  // The run has started: the first signal stops it.
  void attach(exec::Run& run);
  void detach();
  // The first signal that came for a run; 0: none.
  int first() const { return first_.load(); }

 private:
  void loop();
  void take(int signal);

  int signals_ = -1, end_ = -1; // file descriptors: of the signals, of the wish to end
  std::mutex mutex_;
  bool expected_ = false; // a run, or it has started
  exec::Run* run_ = nullptr;
  std::atomic<int> first_{0};
  std::thread thread_; // last: it uses all of the above
};

} // namespace millrace::cli
