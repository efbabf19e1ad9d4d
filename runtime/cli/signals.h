// HUP, INT and TERM: the first drains the run, the second ends the process with a report, the third at once. QUIT is a
// second one. SIGPIPE and SIGXFSZ are errors of the write that met them (semantics.md 8.7, 8.8).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace::cli {

// To be called first of all. A write to a pipe without a reader, or above the file size limit, fails as any other write
// does, and does not end the process. A standard stream that the caller closed is opened on nothing: else the next file
// that is opened would take its number, and what is meant for the terminal would go into that file.
void prepare_standard_streams();

// To be called before anything else can take time: a signal waits from now on until Signals takes it, or until
// release_signals() gives it back to the system.
void hold_signals();
void release_signals();

// Takes the signals from its construction on, in a thread of its own, so that nothing is done inside a signal handler.
// One that was ignored when the program began, as by nohup, stays ignored. To be made before any other thread: threads
// inherit that the signals are not theirs.
class Signals {
 public:
  // What a signal asks for. Each is called at most once, in a thread of its own, because it may meet what hangs.
  struct Asked {
    std::function<void(int signal)> stop;    // the first
    std::function<void(int signal)> give_up; // the second: when it returns the process ends
  };
  explicit Signals(Asked asked);
  // Waits for what a signal began; meanwhile a second one is still taken.
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
  int signals_ = -1, end_ = -1; // file descriptors: of the signals, of the wish to end
  std::atomic<int> first_{0};
  int second_ = 0;
  std::chrono::steady_clock::time_point ends_at_{}; // after the second
  std::mutex doing_mutex_;
  std::vector<std::thread> doing_;
  std::thread thread_; // last: it uses all of the above
};

} // namespace millrace::cli
