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

  // From now on a signal stops this run. Before, and after detach(), it ends the process at once: there is nothing to
  // drain.
  void attach(exec::Run& run);
  void detach();
  // The first signal that came while a run was attached; 0: none.
  int first() const { return first_.load(); }

 private:
  void loop();
  void take(int signal);

  int signals_ = -1, end_ = -1; // file descriptors: of the signals, of the wish to end
  std::mutex mutex_;
  exec::Run* run_ = nullptr;
  std::atomic<int> first_{0};
  std::thread thread_; // last: it uses all of the above
};

} // namespace millrace::cli
