// Turns floating-point rates into fractions: known rates by a table, others by continued fractions.
#include "plugins/opencv/frame_rate.h"

#include <cmath>
#include <initializer_list>

namespace millrace::opencv {

namespace {

constexpr double kRateMax = 1000;         // pictures a second; faster than any camera file, slower than a time base
constexpr int64_t kDenominatorMax = 1001; // the broadcast rates' own
constexpr int64_t kSecondNs = 1000000000;
constexpr double kSecondsMax = 100.0 * 366 * 86400;
constexpr double kWholeTolerance = 0.0005;    // a container's rate is a quotient of integers: whole ones come out whole
constexpr double kBroadcastTolerance = 0.005; // people round 30000/1001 and 24000/1001 to 29.97 and 23.98

// The best fraction of `value` with a bounded denominator, by its continued fraction (convergents only).
FrameRate simplest_fraction(double value) {
  int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
  double rest = value;
  for (int step = 0; step < 32; ++step) {
    const auto whole = static_cast<int64_t>(std::floor(rest));
    const int64_t p2 = whole * p1 + p0, q2 = whole * q1 + q0;
    if (q2 > kDenominatorMax) break;
    p0 = p1, q0 = q1, p1 = p2, q1 = q2;
    const double fraction = rest - static_cast<double>(whole);
    const double error = std::abs(value - static_cast<double>(p1) / static_cast<double>(q1));
    if (fraction < 1e-9 || error < 1e-6 * value) break;
    rest = 1 / fraction;
  }
  return p1 > 0 ? FrameRate{p1, q1} : kFrameRateFallback;
}

} // namespace

bool is_plausible_rate(double pictures_per_second) {
  return pictures_per_second > 1.0 / static_cast<double>(kDenominatorMax) && pictures_per_second <= kRateMax;
}

FrameRate frame_rate_of(double pictures_per_second) {
  if (!is_plausible_rate(pictures_per_second)) return kFrameRateFallback;
  const double whole = std::round(pictures_per_second);
  if (whole >= 1 && std::abs(pictures_per_second - whole) < kWholeTolerance) return {static_cast<int64_t>(whole), 1};
  for (const int64_t nominal : {24, 30, 48, 60, 120}) {
    const double broadcast = static_cast<double>(nominal) * 1000 / 1001;
    if (std::abs(pictures_per_second - broadcast) < kBroadcastTolerance) return {nominal * 1000, 1001};
  }
  return simplest_fraction(pictures_per_second);
}

FrameRate frame_rate_of_period(int64_t period_ns) {
  if (period_ns <= 0) return kFrameRateFallback;
  return frame_rate_of(static_cast<double>(kSecondNs) / static_cast<double>(period_ns));
}

int64_t picture_count_of(double reported, FrameRate rate) {
  const double rate_per_second = static_cast<double>(rate.numerator) / static_cast<double>(rate.denominator);
  return reported >= 1 && reported / rate_per_second <= kSecondsMax ? static_cast<int64_t>(reported) : 0;
}

int64_t time_of_picture(FrameRate rate, int64_t index) {
  // Whole seconds first: the remaining product stays far below 2^63 for every plausible rate.
  const int64_t seconds = index / rate.numerator * rate.denominator;
  return seconds * kSecondNs + index % rate.numerator * rate.denominator * kSecondNs / rate.numerator;
}

} // namespace millrace::opencv
