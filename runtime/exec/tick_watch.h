// Chooses the ticks of a clock whose latency is measured: all of them if ticks are long enough to pay for it, else one
// in N.
//
// Measuring a tick takes a look at the time when it begins, at each of its sinks and when it ends, and counts down a
// word that its segments share. That costs about 0.3 µs with its effect on the caches, which is 0.6 % of kSpacingNs. So
// measured ticks begin kSpacingNs apart on average, and a clock whose ticks begin farther apart has all of them
// measured. The ticks that were measured tell how far apart ticks begin. N varies around its mean, because a fixed N
// would find a handler with `every: 4` always or never at work.
#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace::exec {

// In one tick of 64 every call is timed.
inline constexpr uint64_t kTimedMask = 63, kTimedTick = 32;

class TickWatch {
 public:
  static constexpr int64_t kSpacingNs = 50'000;
  static constexpr uint64_t kSpacingTicksMax = 256; // so that slow ticks among short ones are met

  explicit TickWatch(bool all = false) : all_(all) {}

  // True if this tick is measured. Ordinals are asked for in their order.
  bool is_due(uint64_t ordinal) const { return ordinal == next_; }

  // The tick `ordinal`, which is due, begins now.
  void record_begun(uint64_t ordinal, int64_t now_ns) {
    if (ordinal > 0) record_period((now_ns - begun_ns_) / static_cast<int64_t>(ordinal - begun_));
    begun_ = ordinal;
    begun_ns_ = now_ns;
    next_ = ordinal + 1;
    if (all_ || period_ns_ >= kSpacingNs) return;
    const int64_t spacing = kSpacingNs / std::max<int64_t>(period_ns_, 1);
    next_ += random_below(2 * std::min(static_cast<uint64_t>(spacing), kSpacingTicksMax) - 1);
    if ((next_ & kTimedMask) == kTimedTick) ++next_; // there, timing short calls takes longer than the calls
  }

 private:
  // Keeps a mean that forgets, and that no single period moves far. Otherwise, after one tick that waited for a
  // processor, ticks on cold caches would be measured more often than others.
  void record_period(int64_t period_ns) {
    constexpr int64_t kForgets = 8, kTimesMax = 8;
    const int64_t most_ns = kTimesMax * std::max<int64_t>(period_ns_, 1);
    period_ns_ = known_ ? period_ns_ + (std::min(period_ns, most_ns) - period_ns_) / kForgets : period_ns;
    known_ = true;
  }

  // The same in every run. xorshift64: G. Marsaglia, Xorshift RNGs, 2003.
  uint64_t random_below(uint64_t bound) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % bound;
  }

  bool all_;
  bool known_ = false;
  uint64_t next_ = 0, begun_ = 0;
  int64_t begun_ns_ = 0, period_ns_ = kSpacingNs;
  uint64_t random_ = 0x9e3779b97f4a7c15;
};

} // namespace millrace::exec
