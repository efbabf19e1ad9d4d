// Computes the rate of a source from a number of beats a second, and the times of its beats.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace millrace::handlers {

// Beats a second, as a fraction in lowest terms; 0: the source has no rate of its own.
struct SourceRate {
  int64_t numerator = 0, denominator = 1;
};

// 29.97 and similar rates, 23.98 too, mean n·1000/1001. Others are rounded to a thousandth, or below 1 to a millionth.
// The numerator stays below 2^30, so that its product with a second's nanoseconds fits 64 bits. `fps` is 0 … 100000.
inline SourceRate rate_of(double fps) {
  if (fps <= 0) return {};
  const double whole = std::round(fps);
  if (fps == whole) return {static_cast<int64_t>(whole), 1};
  if (whole >= 24 && std::abs(fps * 1001 - whole * 1000) < 5) return {static_cast<int64_t>(whole) * 1000, 1001};
  const int64_t parts = fps < 1 ? 1'000'000 : 1000;
  const int64_t numerator = std::max<int64_t>(std::llround(fps * static_cast<double>(parts)), 1);
  const int64_t divisor = std::gcd(numerator, parts);
  return {numerator / divisor, parts / divisor};
}

// The time of beat `index` from the start, in nanoseconds; the rate must not be 0. Computed as whole seconds and a
// rest, so that the product stays within 64 bits for any run.
inline int64_t time_of_beat(const SourceRate& rate, uint64_t index) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t beats = static_cast<int64_t>(index) * rate.denominator;
  return beats / rate.numerator * kSecondNs + beats % rate.numerator * kSecondNs / rate.numerator;
}

} // namespace millrace::handlers
