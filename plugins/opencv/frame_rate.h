// Frame rates as fractions: containers and drivers report 29.97 where 30000/1001 is meant.
#pragma once

#include <cstdint>

namespace millrace::opencv {

struct FrameRate {
  int64_t numerator = 25, denominator = 1; // pictures a second
  friend bool operator==(const FrameRate&, const FrameRate&) = default;
};

// The rate where nothing says another.
inline constexpr FrameRate kFrameRateFallback{25, 1};

// Whether a reported rate can be meant: containers without one say 0, or their time base (90000).
bool is_plausible_rate(double pictures_per_second);

// The nearest rate that people use: a whole number, a broadcast rate (k·1000/1001), else the simplest fraction with a
// denominator of at most 1001. The fallback where the number is not plausible.
FrameRate frame_rate_of(double pictures_per_second);

// The rate of pictures that follow each other by `period_ns`; the fallback where that is not plausible.
FrameRate frame_rate_of_period(int64_t period_ns);

// A reported number of pictures; 0 where no video has it: not a number, below one, or more than a hundred years of
// them.
int64_t picture_count_of(double reported, FrameRate rate);

// When picture `index` is shown, in nanoseconds after picture 0; never drifts.
int64_t time_of_picture(FrameRate rate, int64_t index);

} // namespace millrace::opencv
