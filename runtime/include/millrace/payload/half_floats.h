// Float16 and BFloat16: the elements of tensors of 16-bit floating-point numbers, as values. For host code and kernels.
//
//     const std::span<const mr::Float16> from = in(tick).elements<mr::Float16>();
//     const float sum = from[0] + from[1];             // each becomes a float, which is exact
//     to[0] = mr::Float16(sum);                        // rounds to the nearest, ties to even
//
// There is no arithmetic of their own: operators work on the floats that they become.
#pragma once

#include <bit>
#include <cstdint>

#include "millrace/payload/tensor.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define MR_HOST_DEVICE __host__ __device__
#else
#define MR_HOST_DEVICE
#endif

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

namespace detail {
// std::bit_cast can be called in kernels only with an option of nvcc that a plugin may not have.
MR_HOST_DEVICE inline float float_of_bits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}
MR_HOST_DEVICE inline uint32_t bits_of_float(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  return std::bit_cast<uint32_t>(value);
#endif
}
} // namespace detail

// Half precision (IEEE 754 binary16): 11 bits of precision, up to 65504, subnormal numbers from 2^-24.
struct Float16 {
  Float16() = default; // not initialised, as a float
  // Rounds to nearest, ties to even, as processors and GPUs do. Numbers from 65520 on become infinite, and NaN stays
  // NaN.
  MR_HOST_DEVICE explicit Float16(float value);
  MR_HOST_DEVICE static Float16 of_bits(uint16_t bits) {
    Float16 number;
    number.bits = bits;
    return number;
  }
  // Exact.
  MR_HOST_DEVICE operator float() const;

  uint16_t bits;
};

// The upper half of a float (bfloat16): 8 bits of precision, and the range of a float.
struct BFloat16 {
  BFloat16() = default; // not initialised, as a float
  // Rounds to nearest, ties to even. NaN stays NaN.
  MR_HOST_DEVICE explicit BFloat16(float value);
  MR_HOST_DEVICE static BFloat16 of_bits(uint16_t bits) {
    BFloat16 number;
    number.bits = bits;
    return number;
  }
  // Exact.
  MR_HOST_DEVICE operator float() const { return detail::float_of_bits(uint32_t{bits} << 16); }

  uint16_t bits;
};

static_assert(sizeof(Float16) == 2 && sizeof(BFloat16) == 2);

MR_HOST_DEVICE inline Float16::Float16(float value) {
#ifdef __CUDA_ARCH__
  bits = __half_as_ushort(__float2half_rn(value));
#else
  // F. Giesen, "float->half variants": small numbers are rounded by an addition that moves their last bit to the end.
  constexpr uint32_t kInfinite = 0xffu << 23, kTooLarge = (127u + 16) << 23, kNormal = (127u - 14) << 23;
  constexpr uint32_t kShifting = (127u - 15 + 23 - 10 + 1) << 23;
  // Every case is computed and one is selected, because loops without branches vectorise.
  const auto with_sign = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (with_sign & 0x80000000u) >> 16, magnitude = with_sign & 0x7fffffffu;
  const auto added = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kShifting));
  const uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  const uint32_t large = 0x7c00u | (magnitude > kInfinite) << 9;
  const auto chosen = [](bool condition, uint32_t yes, uint32_t no) { // a mask, because ?: would become a branch
    const uint32_t mask = 0u - uint32_t{condition};
    return (yes & mask) | (no & ~mask);
  };
  const uint32_t finite = chosen(magnitude < kNormal, added - kShifting, normal);
  bits = static_cast<uint16_t>(sign | chosen(magnitude >= kTooLarge, large, finite));
#endif
}

MR_HOST_DEVICE inline Float16::operator float() const {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(bits));
#else
  constexpr uint32_t kRebias = 112u << 23; // the exponents' biases are 127 and 15
  const uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu, exponent = bits & 0x7c00u;
  const uint32_t normal = (magnitude << 13) + kRebias;
  // A subnormal number is taken for the fraction of the least normal one, of which that is taken off again.
  const float small = std::bit_cast<float>(normal + (1u << 23)) - 0x1p-14f;
  const uint32_t large = normal + kRebias; // infinity and NaN
  const uint32_t is_small = 0u - uint32_t{exponent == 0}, is_large = 0u - uint32_t{exponent == 0x7c00u};
  return std::bit_cast<float>(sign | (std::bit_cast<uint32_t>(small) & is_small) | (large & is_large) |
                              (normal & ~(is_small | is_large)));
#endif
}

MR_HOST_DEVICE inline BFloat16::BFloat16(float value) {
  const uint32_t all = detail::bits_of_float(value);
  const bool is_nan = (all & 0x7fffffffu) > 0x7f800000u;
  // A NaN keeps its sign and becomes quiet: rounded, it could become infinite.
  bits = static_cast<uint16_t>(is_nan ? all >> 16 | 0x40u : (all + 0x7fffu + (all >> 16 & 1)) >> 16);
}

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
