// What threads sleep on that wait for words: workers of a run, and workers of simulated streams. Ringing costs no
// system call while nobody sleeps, and a sleeper that looked around before it slept misses no ring.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace millrace::device {

// Any thread. To sleep: heard = rings(); look around; nothing to do: sleep(heard). Where others ring by
// ring_if_asleep(), lie_down() comes before the look and get_up() after the sleep.
class Bell {
 public:
  uint32_t rings() const { return rings_.load(std::memory_order_acquire); }

  void ring() {
    rings_.fetch_add(1); // sequentially consistent with lie_down(): one of the two sees the other
    if (sleepers_.load() > 0) call(FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
  }

  // The same at the price of a fence while nobody sleeps: for who rings on every tick. What the sleepers look at must
  // have been stored before.
  void ring_if_asleep() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) > 0) ring();
  }

  void lie_down() {
    sleepers_.fetch_add(1);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void get_up() { sleepers_.fetch_sub(1); }
  // Until a ring later than `heard`, or without a cause, or for at_most_ns (0: no limit).
  void sleep(uint32_t heard, int64_t at_most_ns = 0) {
    sleepers_.fetch_add(1);
    const timespec limit{at_most_ns / 1'000'000'000, at_most_ns % 1'000'000'000};
    if (rings_.load() == heard) call(FUTEX_WAIT_PRIVATE, heard, at_most_ns > 0 ? &limit : nullptr);
    sleepers_.fetch_sub(1);
  }

 private:
  void call(int operation, uint32_t value, const timespec* limit) {
    static_assert(sizeof(rings_) == sizeof(uint32_t), "the kernel looks at these four bytes");
    syscall(SYS_futex, &rings_, operation, value, limit, nullptr, 0);
  }

  alignas(64) std::atomic<uint32_t> rings_{0};
  alignas(64) std::atomic<uint32_t> sleepers_{0}; // a line of its own: read on every tick, written to sleep
};

} // namespace millrace::device
