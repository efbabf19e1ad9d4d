// Watches the calls of handlers that belong to no tick (semantics.md 8.7): probe, configure, start, drain, reset and
// stop. One that takes too long is named; once the run is to end it is interrupted. process() and finish() are the
// run's to watch (exec/monitor.cpp).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace millrace::plugin {

class Instance;

// Of one runtime; outlives its handlers. Any thread.
class CallWatch {
 public:
  struct Options {
    int64_t patience_ns = 10'000'000'000; // per handler: the second time of `budget:`
    // Warnings, a line each, from a thread of this object; null: dropped.
    std::function<void(const std::string&)> on_message;
  };

  explicit CallWatch(Options options);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  struct Call {
    Instance* instance;
    const char* function;
    std::chrono::steady_clock::time_point since;
    bool named = false;
  };
  // A handler's thread begins and ends a call.
  std::list<Call>::iterator begin(Instance& instance, const char* function);
  void end(std::list<Call>::iterator call);

  // The run is to end: from now on calls of probe, configure and start are interrupted, and others once they are past
  // their time. Returns at once.
  void stop();
  // Nothing else moves: what is under way is interrupted now.
  void interrupt_all();
  // "boxes (draw.boxes) in start", those that were begun first in front.
  std::vector<std::string> words() const;

 private:
  void loop();
  void look();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Call> calls_;
  std::chrono::steady_clock::time_point stopped_at_{};
  bool stopping_ = false, closing_ = false;
  std::thread thread_; // last: it uses all of the above
};

} // namespace millrace::plugin
