// Computes percentiles of the last latencies, and finds the time at which a tick was due from its deadline.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace millrace::handlers {

// The record that stats.latency gives out, for the last `count` ticks.
struct Latency {
  static constexpr std::string_view kSchema = "millrace.Latency";
  double p50_us = 0, p99_us = 0, max_us = 0;
  int64_t count = 0;
  static std::vector<mr_field> fields() {
    return {field("p50_us", &Latency::p50_us), field("p99_us", &Latency::p99_us), field("max_us", &Latency::max_us),
            field("count", &Latency::count)};
  }
};

// The last values and their percentiles by nearest rank: the smallest value that is not exceeded by so many per cent of
// all values. Owned by one thread; allocates only in its constructor.
class LatencyWindow {
 public:
  static constexpr uint32_t kCountMax = 4096;

  LatencyWindow() : LatencyWindow(1) {}
  // `capacity` is the number of values that it remembers, 1 … kCountMax.
  explicit LatencyWindow(uint32_t capacity) : values_ns_(capacity), sorted_ns_(capacity) {}

  void add(int64_t latency_ns);
  void clear() { count_ = end_ = 0; }
  // All zero if there are no values. Takes time linear in the window's size.
  Latency latency();

 private:
  std::vector<int64_t> values_ns_; // a ring
  std::vector<int64_t> sorted_ns_; // scratch
  uint32_t end_ = 0, count_ = 0;
};

// Finds the time at which a tick was due. A tick knows only its deadline, which is one period of its clock later. The
// period is given, or learned as the shortest step from one deadline to the next. Owned by one thread.
class DueTimes {
 public:
  // `period_ns` is the clock's period; 0: learn it.
  explicit DueTimes(int64_t period_ns = 0) : given_ns_(period_ns) {}

  // The due time of the tick with this deadline; empty if it has none (0), and as long as the period is not known.
  std::optional<int64_t> due_ns(int64_t deadline_ns);
  void clear() { last_ns_ = learned_ns_ = 0; }

 private:
  int64_t given_ns_ = 0, learned_ns_ = 0, last_ns_ = 0;
};

} // namespace millrace::handlers
