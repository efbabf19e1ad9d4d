// Keeps latencies in a ring, and partly sorts a copy when percentiles are asked for.
#include "handlers/stats/latency_window.h"

#include <algorithm>

namespace millrace::handlers {
namespace {

constexpr double kMicrosecond = 1000; // nanoseconds

// The position of a percentile among `count` sorted values.
ptrdiff_t nearest_rank(uint32_t count, uint32_t percent) {
  return static_cast<ptrdiff_t>((uint64_t{count} * percent + 99) / 100) - 1;
}

} // namespace

void LatencyWindow::add(int64_t latency_ns) {
  const auto capacity = static_cast<uint32_t>(values_ns_.size());
  values_ns_[end_] = latency_ns;
  end_ = (end_ + 1) % capacity;
  if (count_ < capacity) ++count_;
}

Latency LatencyWindow::latency() {
  if (count_ == 0) return {};
  // Until the ring is full it is filled from its beginning, so the values are always the first `count_` elements.
  const auto begin = sorted_ns_.begin(), end = begin + count_;
  std::copy_n(values_ns_.begin(), count_, begin);
  const auto middle = begin + nearest_rank(count_, 50), high = begin + nearest_rank(count_, 99);
  std::nth_element(begin, middle, end);
  const int64_t median = *middle;
  std::nth_element(middle, high, end); // all larger values are after it
  const int64_t largest = *std::max_element(high, end);
  const auto us = [](int64_t ns) { return static_cast<double>(ns) / kMicrosecond; };
  return {us(median), us(*high), us(largest), count_};
}

std::optional<int64_t> DueTimes::due_ns(int64_t deadline_ns) {
  if (deadline_ns == 0) return std::nullopt;
  const int64_t step = last_ns_ == 0 ? 0 : deadline_ns - last_ns_;
  last_ns_ = deadline_ns;
  if (step > 0) learned_ns_ = learned_ns_ == 0 ? step : std::min(learned_ns_, step);
  const int64_t period = given_ns_ > 0 ? given_ns_ : learned_ns_;
  if (period == 0) return std::nullopt;
  return deadline_ns - period;
}

} // namespace millrace::handlers
