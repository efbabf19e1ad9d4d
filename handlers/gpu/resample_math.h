// Finds and weighs the source pixels that make up a target pixel of image.resize: the arithmetic of
// handlers/image/resample.h that the CPU and kernels share.
//
// Rule. `nearest` and `bilinear` use whole numbers and give the same bytes as the CPU, except for pictures of one row
// or column, for which the CPU weighs in single precision. `area` sums the same weights in the same order in single
// precision, but fused multiply-add may round differently: at most 1 away, at near-ties.
#pragma once

#include <cstdint>

#include "handlers/gpu/both.h"
#include "handlers/gpu/divider.h"

namespace millrace::handlers::gpu {

// One direction of a resize, for sides of 1 to 65536. All places are whole numbers in units of half a target pixel.
struct ResizeAxis {
  ResizeAxis(uint32_t source_size, uint32_t target_size)
      : source(source_size), target(target_size), by_twice_target(2 * uint64_t{target_size}) {}
  uint32_t source, target;
  Divider by_twice_target;
};

// The source sample that the centre of target sample i lies in.
MR_BOTH inline uint32_t nearest_source(const ResizeAxis& axis, uint32_t i) {
  return static_cast<uint32_t>(axis.by_twice_target.quotient((2 * uint64_t{i} + 1) * axis.source));
}

// The source samples at first and first + 1; `weight` is that of the second, in 1/65536. It is clamped to 1 … 65535, so
// that both weights fit 16 bits; the error is 1/65536. A source of one sample has no second.
struct BilinearTap {
  uint32_t first;
  uint16_t weight;
};
MR_BOTH inline BilinearTap bilinear_tap(const ResizeAxis& axis, uint32_t i) {
  const uint64_t whole = 2 * uint64_t{axis.target}, last = whole * (axis.source - 1);
  const uint64_t centre = (2 * uint64_t{i} + 1) * axis.source;
  const uint64_t inside = centre < axis.target ? 0 : centre - axis.target;
  const uint64_t place = inside < last ? inside : last;
  uint64_t first = axis.by_twice_target.quotient(place);
  if (axis.source >= 2 && first > axis.source - 2) first = axis.source - 2;
  const uint64_t weight = axis.by_twice_target.quotient(((place - first * whole) << 16) + axis.target);
  return {static_cast<uint32_t>(first), static_cast<uint16_t>(weight < 1 ? 1 : weight > 65535 ? 65535 : weight)};
}

// mixed_sample() mixes two samples of 8 bits into units of 1/256; blended_sample() mixes two of those back to 8 bits.
// The first's weight is 65536 minus the second's, so a product is one instruction. Each of the four products cuts off
// less than 1/256; the mean of that is added on top of the half that rounds. Equal samples are unchanged after
// rounding.
MR_BOTH constexpr uint16_t mixed_sample(uint8_t a, uint8_t b, uint16_t weight) {
  const auto first = static_cast<uint16_t>(-weight);
  const auto left = static_cast<uint16_t>(a << 8), right = static_cast<uint16_t>(b << 8);
  return static_cast<uint16_t>(((uint32_t{left} * first) >> 16) + ((uint32_t{right} * weight) >> 16));
}
MR_BOTH constexpr uint8_t blended_sample(uint16_t left, uint16_t right, uint16_t weight) {
  constexpr uint16_t kHalf8 = 128 + 2;
  const auto first = static_cast<uint16_t>(-weight);
  const auto sum =
      static_cast<uint16_t>(((uint32_t{left} * first) >> 16) + ((uint32_t{right} * weight) >> 16) + kHalf8);
  return static_cast<uint8_t>(sum >> 8);
}

// The source samples first … last that target sample i covers. All weigh `inner`, except the first and the last, which
// may be covered in part. If there is only one sample, it weighs `begin`.
struct AreaTaps {
  uint32_t first, last;
  float begin, inner, end;
  MR_BOTH float weight(uint32_t i) const { return i == first ? begin : i == last ? end : inner; }
};
MR_BOTH inline AreaTaps area_taps(const ResizeAxis& axis, uint32_t i) {
  const uint64_t begin = uint64_t{i} * axis.source, end = begin + axis.source;
  const auto first = static_cast<uint32_t>(axis.by_twice_target.quotient(2 * begin));
  const auto last = static_cast<uint32_t>(axis.by_twice_target.quotient(2 * (end - 1)));
  const auto share = [&axis](uint64_t from, uint64_t to) {
    return static_cast<float>(to - from) / static_cast<float>(axis.source);
  };
  const uint64_t first_end = (uint64_t{first} + 1) * axis.target;
  return {first, last, share(begin, first_end < end ? first_end : end), share(0, axis.target),
          share(uint64_t{last} * axis.target, end)};
}

} // namespace millrace::handlers::gpu
