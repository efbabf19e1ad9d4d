// Finds the beat of a slower grid that a time belongs to; flow.rate keeps one value of each beat.
#pragma once

#include <cmath>
#include <cstdint>

namespace millrace::handlers {

// Media times are cut to whole nanoseconds, so picture n of 30 a second is up to a nanosecond before n / 30. A time
// that is at most this much before a beat belongs to that beat.
inline constexpr int64_t kBeatSlackNs = 1000;

// The beat that covers `time_ns`, of `per_second` beats a second (> 0). Beat 0 begins at 0; times before it have
// negative beats. Seconds and the rest are multiplied separately, so that the product keeps its precision over any run.
inline int64_t beat_of(int64_t time_ns, double per_second) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t seconds = time_ns / kSecondNs, rest = time_ns % kSecondNs;
  const double beats =
      static_cast<double>(seconds) * per_second + static_cast<double>(rest + kBeatSlackNs) * 1e-9 * per_second;
  return static_cast<int64_t>(std::floor(beats));
}

} // namespace millrace::handlers
