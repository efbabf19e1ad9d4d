// Half precision (IEEE 754 binary16) as bits, because not every host compiler has such a type.
#pragma once

#include <bit>
#include <cstdint>

#include "handlers/gpu/both.h"
#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

namespace millrace::handlers {

// Rounded to nearest, halves to even, as the hardware does; too large a value becomes infinite, and NaN stays NaN.
MR_BOTH inline uint16_t half_bits(float value) {
#ifdef __CUDA_ARCH__
  return __half_as_ushort(__float2half_rn(value));
#else
  // F. Giesen, "float->half variants": small numbers are rounded by an addition that moves their last bit to the end.
  constexpr uint32_t kInfinite = 0xffu << 23, kTooLarge = (127u + 16) << 23, kNormal = (127u - 14) << 23;
  constexpr uint32_t kShifting = (127u - 15 + 23 - 10 + 1) << 23;
  // Every case is computed and one is selected, because loops without branches vectorise.
  const auto with_sign = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (with_sign & 0x80000000u) >> 16, bits = with_sign & 0x7fffffffu;
  const auto added = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + std::bit_cast<float>(kShifting));
  const uint32_t normal = (bits + 0xfffu + (bits >> 13 & 1) - (112u << 23)) >> 13;
  const uint32_t large = 0x7c00u | (bits > kInfinite) << 9;
  const auto chosen = [](bool condition, uint32_t yes, uint32_t no) { // a mask, because ?: would become a branch
    const uint32_t mask = 0u - uint32_t{condition};
    return (yes & mask) | (no & ~mask);
  };
  const uint32_t finite = chosen(bits < kNormal, added - kShifting, normal);
  return static_cast<uint16_t>(sign | chosen(bits >= kTooLarge, large, finite));
#endif
}

// Exact.
inline float float_of_half(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0xffu << 23 | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) / 16777216.0f; // subnormals count in 2^-24
  return sign ? -small : small;
}

} // namespace millrace::handlers
