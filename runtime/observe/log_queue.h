// The bounded queue between the threads that log and the one thread that writes.
//
// spdlog's own asynchronous queue belongs to the whole process and takes a lock to put a message in; a worker of a run
// may do neither. Here a thread writes an entry in place: it claims a place by one compare-and-swap, fills it and marks
// it. Nothing is allocated, no thread waits for another, and no system call is made. A place carries its turn (Vyukov's
// bounded queue), so a producer sees a full queue without asking the reader. An entry that finds the queue full is
// counted and dropped: a log that cannot keep up must not slow down the run.
//
// Entries of one thread keep their order.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "millrace/log.h"

namespace millrace {

struct LogSource;

struct LogEntry {
  // Bytes, about four lines of a wide terminal. The report has the longer sentences of handlers.
  static constexpr size_t kTextMax = 1000;

  const LogSource* source = nullptr;
  int64_t time_ns = 0;
  uint64_t tick = LogRecord::kNoTick;
  uint32_t stream = LogRecord::kNoStream;
  LogLevel level = LogLevel::info;
  uint16_t code = 0;
  uint16_t size = 0;                                          // bytes in `text`
  bool by_handler = false, on_terminal = true, as_is = false; // see Log::Context
  char text[kTextMax];
};

class LogQueue {
 public:
  // `places` becomes a power of two.
  explicit LogQueue(size_t places) : mask_(std::bit_ceil(places) - 1), places_(new Place[mask_ + 1]) {
    for (size_t i = 0; i <= mask_; ++i) places_[i].turn.store(i, std::memory_order_relaxed);
  }

  // Any thread. fill(entry) writes all fields. If the queue is full, counts the entry as lost and returns false.
  template <class Fill>
  bool push(Fill&& fill) {
    uint64_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Place& place = places_[at & mask_];
      const auto ahead = static_cast<int64_t>(place.turn.load(std::memory_order_acquire) - at);
      if (ahead < 0) {
        lost_.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
      if (ahead > 0) { // another thread was quicker
        at = tail_.load(std::memory_order_relaxed);
        continue;
      }
      if (!tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
      fill(place.entry);
      place.turn.store(at + 1, std::memory_order_release);
      return true;
    }
  }

  // One thread. use(entry) sees the oldest entry. False if there is none or its writer is not done yet.
  template <class Use>
  bool take(Use&& use) {
    Place& place = places_[head_ & mask_];
    if (place.turn.load(std::memory_order_acquire) != head_ + 1) return false;
    use(const_cast<const LogEntry&>(place.entry));
    place.turn.store(head_ + mask_ + 1, std::memory_order_release);
    ++head_;
    return true;
  }

  size_t size() const { return mask_ + 1; }
  uint64_t pushed() const { return tail_.load(std::memory_order_acquire); } // places claimed so far; any thread
  uint64_t taken() const { return head_; }                                  // only the thread that takes
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }   // any thread

 private:
  struct alignas(64) Place {
    std::atomic<uint64_t> turn{0}; // == position: free; == position + 1: written
    LogEntry entry;
  };

  const uint64_t mask_;
  const std::unique_ptr<Place[]> places_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) std::atomic<uint64_t> lost_{0};
  alignas(64) uint64_t head_ = 0;
};

} // namespace millrace
