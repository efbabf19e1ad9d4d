// Changes the tone of a number and the saturation of a colour: the arithmetic of handlers/image/tone.h that the CPU and
// kernels share.
//
// Rule. The arithmetic uses whole numbers only, so CPU and GPU give the same bits.
#pragma once

#include <array>
#include <cstdint>

#include "handlers/gpu/both.h"
#include "handlers/image/planes.h"

namespace millrace::handlers {

// The numbers of a channel, and the bits of a line's fraction: with them the steepest line fits 31 bits. Ten bits count
// from 0 to 1023 here; in a picture they are at the top of 16.
template <class Number>
inline constexpr uint32_t kToneSteps = sizeof(Number) == 2 ? 1024 : 256;
template <class Number>
inline constexpr int kToneFraction = sizeof(Number) == 2 ? 13 : 16;
template <class Number>
inline constexpr int kToneUp = sizeof(Number) == 2 ? kBelowTenBits : 0;

// A line over numbers: clamp((v · gain + offset) >> fraction) between low and high.
struct ToneLine {
  int32_t gain = 65536, offset = 0;
  int32_t low = 0, high = 255;
};

template <class Number>
MR_INTO_LOOPS int32_t on_line(const ToneLine& line, int32_t value) {
  const int32_t sum = (value * line.gain + line.offset) >> kToneFraction<Number>;
  return sum < line.low ? line.low : sum > line.high ? line.high : sum;
}

// The tone of one kind of plane.
template <class Number>
struct ToneCurveOf {
  std::array<Number, kToneSteps<Number>> table{};
  ToneLine line;
  bool straight = true; // gamma is 1, and the table equals the line
};

// Saturation in 15 bits: `own` is the factor of the channel itself; the others are each channel's share in the sum that
// is added to all three.
struct Saturation {
  int32_t own = 32768, red = 0, green = 0, blue = 0;
  bool is_none() const { return own == 32768; }
};
// The same for pixels whose first channel is blue.
inline Saturation with_blue_first(const Saturation& by) { return {by.own, by.blue, by.green, by.red}; }

MR_INTO_LOOPS int32_t shared_sum(const Saturation& by, int32_t first, int32_t second, int32_t third) {
  return first * by.red + second * by.green + third * by.blue + 16384;
}
MR_INTO_LOOPS int32_t saturated(const Saturation& by, int32_t value, int32_t shared) {
  const int32_t sum = (value * by.own + shared) >> 15;
  return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

} // namespace millrace::handlers
