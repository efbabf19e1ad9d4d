// SIGHUP, SIGINT and SIGTERM: the first drains the run, the second ends the process. SIGPIPE and SIGXFSZ are errors of
// the write that met them.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "exec/run.h"

namespace millrace::cli {

// To be called first of all. A write to a pipe without a reader, or above the file size limit, fails as any other write
// does, and does not end the process. A standard stream that the caller closed is opened on nothing: else the next file
// that is opened would take its number, and what is meant for the terminal would go into that file.
void prepare_standard_streams();

// Takes the signals from its construction on, in a thread of its own, so that nothing is done inside a signal handler.
// One that was ignored when the program began, as by nohup, stays ignored. To be made before any other thread: threads
// inherit that the signals are not theirs.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // A run is about to start: the first signal is kept for it, and `interrupt` is called until attach() or detach(), so
  // that no handler's start waits on. Before, and after detach(), a signal ends the process at once: there is nothing
  // to drain. `interrupt` is called in the thread of this object.
  void expect_run(std::function<void()> interrupt);
  // The run has started: the first signal stops it.
  void attach(exec::Run& run);
  void detach();
  // The first signal that came for a run; 0: none.
  int first() const { return first_.load(); }
  // It came while the run started, and what a handler says of being interrupted is no failure of the run.
  bool came_at_start() const { return came_at_start_.load(); }

 private:
  void loop();
  void take(int signal);
  // Whether a run that a signal has met is still starting: then its handlers were interrupted, and will be again.
  bool interrupted_start();

  int signals_ = -1, end_ = -1; // file descriptors: of the signals, of the wish to end
  std::mutex mutex_;
  bool expected_ = false;           // a run, or it has started
  std::function<void()> interrupt_; // while it starts
  exec::Run* run_ = nullptr;
  std::atomic<int> first_{0};
  std::atomic<bool> came_at_start_{false};
  std::thread thread_; // last: it uses all of the above
};

} // namespace millrace::cli
