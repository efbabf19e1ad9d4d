// Handles HUP, INT and TERM: the first signal drains the run, the second ends the process with a report, the third ends
// it at once. QUIT counts as a second one. SIGPIPE and SIGXFSZ become errors of the write that raised them
// (semantics.md 8.7, 8.8).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace::cli {

// Call it first of all. A write to a pipe without a reader, or beyond the file size limit, then fails like any other
// write and does not end the process. A standard stream that the caller closed is opened on /dev/null: else the next
// file that is opened would take its number, and output for the terminal would go into that file.
void prepare_standard_streams();

// Call it before anything that can take time: from then on a signal waits until Signals takes it, or until
// release_signals() gives it back to the system.
void hold_signals();
void release_signals();

// Call it before another program takes the place of this one: each signal then does what it did when this one began.
void restore_signals();

// Takes the signals from its construction on, in a thread of its own, so that no work is done inside a signal handler.
// A signal that was ignored when the program began, as by nohup, stays ignored. Make it before any other thread:
// threads inherit the mask that blocks the signals.
class Signals {
 public:
  // The functions that a signal calls. Each is called at most once, in a thread of its own, because it may hang.
  struct Asked {
    std::function<void(int signal)> stop;    // for the first signal
    std::function<void(int signal)> give_up; // for the second one: the process ends when it returns
  };
  explicit Signals(Asked asked);
  // Waits for the functions that signals have called; meanwhile it still takes a second signal.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The first signal that came; 0: none.
  int first() const { return first_.load(); }

 private:
  void loop();
  void take(int signal);
  void do_apart(std::function<void()> what);
  void join_doing();

  const Asked asked_;
  int signals_ = -1, end_ = -1; // file descriptors: the signals, and the request to end the thread
  std::atomic<int> first_{0};
  int second_ = 0;
  std::chrono::steady_clock::time_point ends_at_{}; // valid after the second signal: the process ends by then
  std::mutex doing_mutex_;
  std::vector<std::thread> doing_;
  std::thread thread_; // last: it uses all of the above
};

} // namespace millrace::cli
