// Frame rates as fractions: containers and drivers report 29.97 and mean 30000/1001.
#pragma once

#include <cstdint>

namespace millrace::opencv {

struct FrameRate {
  int64_t numerator = 25, denominator = 1; // pictures a second
  friend bool operator==(const FrameRate&, const FrameRate&) = default;
};

// The rate if none is known.
inline constexpr FrameRate kFrameRateFallback{25, 1};

// True if a reported rate is plausible. Containers without a rate say 0, or their time base (90000).
bool is_plausible_rate(double pictures_per_second);

// The nearest rate that people use: a whole number, a broadcast rate (k·1000/1001), else the simplest fraction with a
// denominator of at most 1001. The fallback if the number is not plausible.
FrameRate frame_rate_of(double pictures_per_second);

// The rate of pictures that are `period_ns` apart; the fallback if that is not plausible.
FrameRate frame_rate_of_period(int64_t period_ns);

// A reported number of pictures; 0 if no video can have that many: not a number, below one, or over a hundred years of
// pictures.
int64_t picture_count_of(double reported, FrameRate rate);

// The time at which picture `index` is shown, in nanoseconds after picture 0. It never drifts.
int64_t time_of_picture(FrameRate rate, int64_t index);

} // namespace millrace::opencv
