// Divides by a constant with one multiplication, instead of the hundred instructions of a division on a GPU.
#pragma once

#include <cstdint>

#include "handlers/gpu/both.h"

namespace millrace::handlers::gpu {

// The upper 64 bits of a product of two 64-bit numbers.
MR_BOTH inline uint64_t high64(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{a} * b) >> 64);
#endif
}

// Exact if the divisor is 2 or more and number times divisor is below 2^64. Rounding up the reciprocal adds at most
// number / 2^64 to the quotient. That is less than 1 / divisor, and the exact quotient is at least that far below the
// next whole number (Granlund and Montgomery, 1994).
struct Divider {
  Divider() = default;
  explicit Divider(uint64_t by) : reciprocal(~uint64_t{0} / by + 1) {}
  MR_BOTH uint64_t quotient(uint64_t number) const { return high64(number, reciprocal); }

  uint64_t reciprocal = 0; // 2^64 / divisor, rounded up
};

} // namespace millrace::handlers::gpu
