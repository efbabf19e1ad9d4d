// An event count: threads sleep on it until a word that they watch may have changed. notify() makes no system call if
// no thread waits, and a waiter that checks its condition between epoch() and wait() misses no notification.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace millrace::device {

// Any thread may call it. To wait:
//   const uint32_t seen = events.epoch();
//   if (nothing_to_do()) events.wait(seen);
// If others notify with notify_waiters(), call prepare_wait() before the check and cancel_wait() after the wait.
class EventCount {
 public:
  uint32_t epoch() const { return epoch_.load(std::memory_order_acquire); }

  void notify() {
    epoch_.fetch_add(1); // sequentially consistent with prepare_wait(): one of the two sees the other
    if (waiters_.load() > 0) call(FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
  }

  // After a memory fence of the caller's: costs only a load if no thread waits, and is then false. Before the fence,
  // store the state that the waiters check.
  bool notify_waiters() {
    if (waiters_.load(std::memory_order_relaxed) == 0) return false;
    notify();
    return true;
  }

  void prepare_wait() {
    waiters_.fetch_add(1);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void cancel_wait() { waiters_.fetch_sub(1); }
  // Returns after a notification later than `seen`, after at_most_ns (0: no limit), or without a cause.
  void wait(uint32_t seen, int64_t at_most_ns = 0) {
    waiters_.fetch_add(1);
    const timespec limit{at_most_ns / 1'000'000'000, at_most_ns % 1'000'000'000};
    if (epoch_.load() == seen) call(FUTEX_WAIT_PRIVATE, seen, at_most_ns > 0 ? &limit : nullptr);
    waiters_.fetch_sub(1);
  }

 private:
  void call(int operation, uint32_t value, const timespec* limit) {
    static_assert(sizeof(epoch_) == sizeof(uint32_t), "the kernel looks at these four bytes");
    syscall(SYS_futex, &epoch_, operation, value, limit, nullptr, 0);
  }

  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<uint32_t> waiters_{0}; // a line of its own: read on every tick, written to wait
};

} // namespace millrace::device
