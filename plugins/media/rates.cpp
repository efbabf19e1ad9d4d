// Makes fractions of rates: known rates by a table, others by libavutil's continued fractions.
#include "plugins/media/rates.h"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

#include <millrace/read_number.h>

namespace millrace::media {

namespace {

constexpr double kRateMax = 1000, kRateMin = 0.001; // faster than any camera; slower than a day seen in an hour
constexpr int kNumeratorMax = 100000;               // leaves room for a time base below kTimeBaseFine
constexpr int64_t kSecondNs = 1000000000;
constexpr double kWholeTolerance = 0.0005;    // times in whole nanoseconds or milliseconds make 30 into 29.99997
constexpr double kBroadcastTolerance = 0.005; // people round 30000/1001 and 24000/1001 to 29.97 and 23.98

AVRational rate_of(double pictures_per_second) {
  const double whole = std::round(pictures_per_second);
  if (whole >= 1 && std::abs(pictures_per_second - whole) < kWholeTolerance) return {static_cast<int>(whole), 1};
  for (const int nominal : {24, 30, 48, 60, 120})
    if (std::abs(pictures_per_second - nominal * 1000 / 1001.0) < kBroadcastTolerance) return {nominal * 1000, 1001};
  return av_d2q(pictures_per_second, kNumeratorMax);
}

bool is_plausible(double rate) { return rate >= kRateMin && rate <= kRateMax; }

} // namespace

AVRational rate_of_period(int64_t period_ns) {
  if (period_ns <= 0) return kRateFallback;
  const double rate = static_cast<double>(kSecondNs) / static_cast<double>(period_ns);
  return is_plausible(rate) ? rate_of(rate) : kRateFallback;
}

AVRational read_rate(const std::string& parameter, const std::string& text) {
  size_t length = 0;
  double rate = v1::detail::leading_number(text, length);
  std::string_view rest = std::string_view(text).substr(length);
  AVRational exact{0, 1};
  if (rest.starts_with('/')) {
    rest.remove_prefix(1);
    const double numerator = rate, denominator = v1::detail::leading_number(rest, length);
    rest.remove_prefix(length);
    rate = denominator > 0 ? numerator / denominator : 0;
    if (rate > 0 && numerator <= kNumeratorMax && denominator <= kNumeratorMax && numerator == std::floor(numerator) &&
        denominator == std::floor(denominator))
      av_reduce(&exact.num, &exact.den, static_cast<int64_t>(numerator), static_cast<int64_t>(denominator),
                kNumeratorMax);
  }
  if (!rest.empty() || !is_plausible(rate))
    throw std::invalid_argument("parameter '" + parameter + "': '" + text +
                                "' is no rate such as 30, 29.97 or 30000/1001, of at most 1000 a second");
  return exact.num > 0 ? exact : rate_of(rate);
}

AVRational time_base_for(AVRational rate, int denominator_max) {
  int64_t denominator = rate.num;
  while (denominator * 2 <= denominator_max) denominator *= 2;
  // If the rate's own numerator is too large for the codec, its finest time base is used, and times are rounded.
  return {1, static_cast<int>(denominator <= denominator_max ? denominator : denominator_max)};
}

int64_t in_units(int64_t time_ns, AVRational time_base) {
  return av_rescale_q_rnd(time_ns, {1, static_cast<int>(kSecondNs)}, time_base, AV_ROUND_NEAR_INF);
}

} // namespace millrace::media
