// Frame rates as fractions, and time bases that hold them exactly.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/media/av.h"

namespace millrace::media {

// The rate if none is known.
inline constexpr AVRational kRateFallback{25, 1};

// The rate of pictures that are `period_ns` apart: a whole number, a broadcast rate (k·1000/1001), else the nearest
// fraction. The fallback if no film has such a rate (below one in 1000 seconds, above 1000 a second).
AVRational rate_of_period(int64_t period_ns);

// "30", "29.97", "30000/1001". Throws std::invalid_argument in a sentence that names `parameter`.
AVRational read_rate(const std::string& parameter, const std::string& text);

// 1/(numerator · 2^k), the finest with a denominator of at most `denominator_max`. Pictures at the rate have whole
// times, and any other time is off by at most half a unit, which is 1 µs for kTimeBaseFine.
inline constexpr int kTimeBaseFine = 1000000;
inline constexpr int kTimeBasePlain = 65536; // off by at most 16 µs
AVRational time_base_for(AVRational rate, int denominator_max = kTimeBaseFine);

// Converts nanoseconds to units of a time base, rounded to the nearest, halves up.
int64_t in_units(int64_t time_ns, AVRational time_base);

} // namespace millrace::media
