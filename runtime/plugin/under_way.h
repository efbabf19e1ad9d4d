// The handler call that a thread is in, for a signal handler that must name it (embed/crash_report.h), since the thread
// itself no longer can. Nothing is written per call: a thread sets once where its call can be looked up.
#pragma once

#include <cstdint>

namespace millrace::plugin {

// Strings live as long as the handler. handler null: no call is under way.
struct CallName {
  static constexpr uint64_t kNoTick = UINT64_MAX;
  const char* handler = nullptr;
  const char* type = "";
  const char* function = "process";
  uint64_t tick = kNoTick;
};

// Async-signal-safe on its own thread: `look_up` reads data that this thread wrote before, and takes no lock.
struct UnderWay {
  CallName (*look_up)(const void* of) = nullptr;
  const void* of = nullptr;
  CallName name() const { return look_up ? look_up(of) : CallName{}; }
};
inline thread_local UnderWay under_way;

// Scopes nest: a handler that starts again does so within its own call.
class UnderWayScope {
 public:
  explicit UnderWayScope(UnderWay inner) : outer_(under_way) { under_way = inner; }
  ~UnderWayScope() { under_way = outer_; }
  UnderWayScope(const UnderWayScope&) = delete;
  UnderWayScope& operator=(const UnderWayScope&) = delete;

 private:
  UnderWay outer_;
};

} // namespace millrace::plugin
