// Measures how often something happens over the last stretch of time.
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/payload.h>

namespace millrace::handlers {

// The record that stats.fps gives out: `interval_count` intervals took `span_ns` together.
struct Rate {
  static constexpr std::string_view kSchema = "millrace.Rate";
  double per_second = 0;
  int64_t span_ns = 0;
  int64_t interval_count = 0;
  static std::vector<mr_field> fields() {
    return {field("per_second", &Rate::per_second), field("span_ns", &Rate::span_ns),
            field("interval_count", &Rate::interval_count)};
  }
};

// Remembers the times within the last window. The rate is the number of intervals between them divided by their total
// length, so it is exact from the second time on and has no bias. Owned by one thread.
class RateMeter {
 public:
  // More times than this within a window shorten it, which bounds the memory: no pictures come at 4096 a second.
  static constexpr uint32_t kTimesMax = 4096;

  // Allocates all memory.
  RateMeter() : times_(kTimesMax) {}

  // Times come in order; one that goes back (a seek, another clock) starts over.
  void add(int64_t time_ns, int64_t window_ns);
  void clear() { count_ = 0; }
  // All zero until there are two different times. If the last interval alone is longer than the window, the rate is
  // that of this interval.
  Rate rate() const;

 private:
  int64_t oldest() const { return times_[(end_ + kTimesMax - count_) % kTimesMax]; }
  int64_t newest() const { return times_[(end_ + kTimesMax - 1) % kTimesMax]; }

  std::vector<int64_t> times_; // a ring; end_ is one past the newest
  uint32_t end_ = 0, count_ = 0;
};

} // namespace millrace::handlers
