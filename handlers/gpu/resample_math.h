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
#include "handlers/image/planes.h"

namespace millrace::handlers::gpu {

// One direction of a resize, for sides of 1 to 65536. All places are whole numbers in units of half a target pixel.
//
// A chroma plane of half the size has one sample for each 2 × 2 pixels, in their middle; the number of samples is
// rounded up. In a picture with an odd side the last sample reaches beyond the picture. So the scale is that of the
// picture's lengths, `from` and `to`, and not that of the numbers of samples.
struct ResizeAxis {
  ResizeAxis(uint32_t source_size, uint32_t target_size)
      : ResizeAxis(source_size, target_size, source_size, target_size) {}
  ResizeAxis(uint32_t source_size, uint32_t target_size, uint32_t from_length, uint32_t to_length)
      : source(source_size),
        target(target_size),
        from(from_length),
        to(to_length),
        by_twice_target(2 * uint64_t{to_length}) {}
  // The axis of a chroma plane of half the size. The lengths are the picture's.
  static ResizeAxis of_halved(uint32_t from_length, uint32_t to_length) {
    return {from_length / 2 + from_length % 2, to_length / 2 + to_length % 2, from_length, to_length};
  }
  uint32_t source, target; // samples
  uint32_t from, to;
  Divider by_twice_target;
};

// The source sample that the centre of target sample i lies in.
MR_BOTH inline uint32_t nearest_source(const ResizeAxis& axis, uint32_t i) {
  const auto found = static_cast<uint32_t>(axis.by_twice_target.quotient((2 * uint64_t{i} + 1) * axis.from));
  return found < axis.source ? found : axis.source - 1;
}

// The source samples at first and first + 1; `weight` is that of the second, in 1/65536. It is clamped to 1 … 65535, so
// that both weights fit 16 bits; the error is 1/65536. A source of one sample has no second.
struct BilinearTap {
  uint32_t first;
  uint16_t weight;
};
MR_BOTH inline BilinearTap bilinear_tap(const ResizeAxis& axis, uint32_t i) {
  const uint64_t whole = 2 * uint64_t{axis.to}, last = whole * (axis.source - 1);
  const uint64_t centre = (2 * uint64_t{i} + 1) * axis.from;
  const uint64_t inside = centre < axis.to ? 0 : centre - axis.to;
  const uint64_t place = inside < last ? inside : last;
  uint64_t first = axis.by_twice_target.quotient(place);
  if (axis.source >= 2 && first > axis.source - 2) first = axis.source - 2;
  const uint64_t weight = axis.by_twice_target.quotient(((place - first * whole) << 16) + axis.to);
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

// The same for ten bits at the top of sixteen, in units of 1/64 of their step. The six bits below are ignored.
MR_BOTH constexpr uint16_t mixed_sample(uint16_t a, uint16_t b, uint16_t weight) {
  const auto first = static_cast<uint16_t>(-weight);
  return static_cast<uint16_t>(((uint32_t{a} * first) >> 16) + ((uint32_t{b} * weight) >> 16));
}
MR_BOTH constexpr uint16_t blended_sample16(uint16_t left, uint16_t right, uint16_t weight) {
  constexpr uint16_t kHalf10 = 32 + 2;
  return static_cast<uint16_t>((mixed_sample(left, right, weight) + kHalf10) & kTenBits);
}
// Sums are never negative and at most a rounding error above the greatest number.
MR_BOTH inline uint16_t rounded_sample16(float sum) {
  const auto ten_bits = static_cast<uint32_t>(sum / 64 + 0.5F);
  return static_cast<uint16_t>((ten_bits < 1023 ? ten_bits : 1023) << 6);
}

// The source samples first … last that target sample i covers. All weigh `inner`, except the first and the last, which
// may be covered in part. If there is only one sample, it weighs `begin`.
struct AreaTaps {
  uint32_t first, last;
  float begin, inner, end;
  MR_BOTH float weight(uint32_t i) const { return i == first ? begin : i == last ? end : inner; }
};
MR_BOTH inline AreaTaps area_taps(const ResizeAxis& axis, uint32_t i) {
  const uint64_t begin = uint64_t{i} * axis.from, whole = begin + axis.from, most = uint64_t{axis.source} * axis.to;
  const uint64_t end = whole < most ? whole : most;
  const auto first = static_cast<uint32_t>(axis.by_twice_target.quotient(2 * begin));
  const auto last = static_cast<uint32_t>(axis.by_twice_target.quotient(2 * (end - 1)));
  const auto share = [covered = static_cast<float>(end - begin)](uint64_t from, uint64_t to) {
    return static_cast<float>(to - from) / covered;
  };
  const uint64_t first_end = (uint64_t{first} + 1) * axis.to;
  return {first, last, share(begin, first_end < end ? first_end : end), share(0, axis.to),
          share(uint64_t{last} * axis.to, end)};
}

} // namespace millrace::handlers::gpu
