// Watches the calls of handlers that belong to no tick (semantics.md 8.7): probe, configure, start, drain, reset and
// stop. A call that takes too long is named; once the run is to end it is interrupted. The run itself watches process()
// and finish() (exec/monitor.cpp).
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

// Watches the handlers of one runtime and outlives them. Any thread.
class CallWatch {
 public:
  struct Options {
    int64_t patience_ns = 10'000'000'000; // per handler: the second time of `budget:`
    // Receives warnings, one line each, from a thread of this object; null: they are dropped.
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
  // The thread that calls the handler reports the begin and the end of a call.
  std::list<Call>::iterator begin(Instance& instance, const char* function);
  void end(std::list<Call>::iterator call);
  // Forgets the calls of an instance whose call was given up and reports no end.
  void forget(const Instance& instance);

  // Tells that the run is to end: from now on calls of probe, configure and start are interrupted, and other calls once
  // they are past their time. Returns at once.
  void stop();
  // Interrupts all calls that are under way now; for a run in which nothing else moves.
  void interrupt_all();
  // The calls under way, the oldest first: "boxes (draw.boxes) in start".
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
