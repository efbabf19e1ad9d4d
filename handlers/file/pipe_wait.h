// Waits for pipes in a way that another thread can end.
#pragma once

#include <atomic>

namespace millrace::handlers {

// interrupt() may come from any thread, all else from one.
class PipeWait {
 public:
  // An interrupt is noticed so late at most.
  static constexpr int kSliceMs = 20;

  // Until the descriptor can be read (POLLIN) or written (POLLOUT) without blocking; also where its other end has gone
  // or it fails, which the next call says. False: interrupted.
  bool until(int descriptor, short events);
  // Waits for one slice, for what has no descriptor yet. False: interrupted.
  bool slice();

  // Ends a wait of now, or the next one, once.
  void interrupt() { interrupted_.store(true, std::memory_order_relaxed); }
  // Forgets an interrupt that met no wait.
  void clear() { interrupted_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> interrupted_{false};
};

} // namespace millrace::handlers
