// The bells of several threads: each sleeps on one of its own, so that a ring wakes only those that it is for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/event_count.h"

namespace millrace::device {

// Any thread may ring. Before it rings it stores the state that the sleepers check. To sleep:
//   bells.prepare_wait(mine);
//   const uint32_t seen = bells.epoch(mine);
//   if (nothing_to_do()) bells.wait(mine, seen, at_most_ns);
//   bells.cancel_wait(mine);
class Bells {
 public:
  explicit Bells(size_t count) : bells_(count) {}

  // True if some thread sleeps, or is about to. Costs a memory fence, which also serves the rings after it.
  bool any_waits() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return waiting_.load(std::memory_order_relaxed) > 0;
  }
  // After any_waits(): wakes the thread of this bell. False if it does not sleep.
  bool ring(size_t bell) { return bells_[bell].notify_waiters(); }
  void ring_all() {
    if (!any_waits()) return;
    for (EventCount& bell : bells_) bell.notify_waiters();
  }

  void prepare_wait(size_t bell) {
    waiting_.fetch_add(1);
    bells_[bell].prepare_wait();
  }
  void cancel_wait(size_t bell) {
    bells_[bell].cancel_wait();
    waiting_.fetch_sub(1);
  }
  uint32_t epoch(size_t bell) const { return bells_[bell].epoch(); }
  void wait(size_t bell, uint32_t seen, int64_t at_most_ns) { bells_[bell].wait(seen, at_most_ns); }

 private:
  std::vector<EventCount> bells_;
  alignas(64) std::atomic<uint32_t> waiting_{0}; // a line of its own: read on every tick, written to wait
};

} // namespace millrace::device
