// Half precision (IEEE 754 binary16) as bits: not every compiler of the host has such a type.
#pragma once

#include <cstdint>
#include <cstring>

#include "handlers/gpu/both.h"
#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

namespace millrace::handlers {

// Rounded to nearest, halves to even, as the hardware does; too large becomes infinite, and NaN stays NaN.
MR_BOTH inline uint16_t half_bits(float value) {
#ifdef __CUDA_ARCH__
  return __half_as_ushort(__float2half_rn(value));
#else
  // F. Giesen, "float->half variants": small numbers are rounded by an addition that moves their last bit to the end.
  constexpr uint32_t kInfinite = 0xffu << 23, kTooLarge = (127u + 16) << 23, kNormal = (127u - 14) << 23;
  constexpr uint32_t kShifting = (127u - 15 + 23 - 10 + 1) << 23;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = (bits & 0x80000000u) >> 16;
  bits &= 0x7fffffffu;
  if (bits >= kTooLarge) return static_cast<uint16_t>(sign | (bits > kInfinite ? 0x7e00u : 0x7c00u));
  if (bits < kNormal) {
    float small, shifting;
    std::memcpy(&small, &bits, sizeof small);
    std::memcpy(&shifting, &kShifting, sizeof shifting);
    small += shifting;
    std::memcpy(&bits, &small, sizeof bits);
    return static_cast<uint16_t>(sign | (bits - kShifting));
  }
  bits += 0xfffu + (bits >> 13 & 1) - (112u << 23);
  return static_cast<uint16_t>(sign | bits >> 13);
#endif
}

// Exact.
inline float float_of_half(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 0x3ffu;
  uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
  if (exponent == 31) bits = sign | 0xffu << 23 | fraction << 13;
  if (exponent > 0) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  const float small = static_cast<float>(fraction) / 16777216.0f; // subnormals count in 2^-24
  return sign ? -small : small;
}

} // namespace millrace::handlers
