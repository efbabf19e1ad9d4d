// Waits for pipes in a way that another thread can end.
#pragma once

#include <atomic>

namespace millrace::handlers {

// interrupt() may be called from any thread, all other functions only by one thread.
class PipeWait {
 public:
  // The longest time until an interrupt is noticed.
  static constexpr int kSliceMs = 20;

  // Waits until the descriptor can be read (POLLIN) or written (POLLOUT) without blocking. It also returns true if the
  // other end is gone or the descriptor failed; the following read or write reports that. False: interrupted.
  bool until(int descriptor, short events);
  // Waits for one slice, for things that have no descriptor yet. False: interrupted.
  bool slice();

  // Ends the wait that is under way, or else the next one, once.
  void interrupt() { interrupted_.store(true, std::memory_order_relaxed); }
  // Forgets an interrupt that came while nothing waited.
  void clear() { interrupted_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> interrupted_{false};
};

} // namespace millrace::handlers
