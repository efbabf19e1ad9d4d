// Finds the beat of a slower grid that a time belongs to; flow.rate keeps one value of each beat.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace millrace::handlers {

// Containers round times to a millisecond at the coarsest (Matroska, FLV), so picture n of 30 a second may be so much
// before n / 30, counted from a first picture whose time was rounded too.
inline constexpr int64_t kRoundingMaxNs = 1'000'001;

// A time that is at most this much before a beat belongs to that beat.
inline int64_t beat_slack_ns(double per_second) {
  return static_cast<int64_t>(std::min(static_cast<double>(kRoundingMaxNs), 1e9 / per_second / 4));
}

// The beat that covers `time_ns`, of `per_second` beats a second (> 0). Beat 0 begins at 0; times before it have
// negative beats. Seconds and the rest are multiplied separately, so that the product keeps its precision over any run.
inline int64_t beat_of(int64_t time_ns, double per_second) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t seconds = time_ns / kSecondNs, rest = time_ns % kSecondNs;
  const double beats = static_cast<double>(seconds) * per_second +
                       static_cast<double>(rest + beat_slack_ns(per_second)) * 1e-9 * per_second;
  return static_cast<int64_t>(std::floor(beats));
}

} // namespace millrace::handlers
