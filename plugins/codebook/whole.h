// Numbers as whole multiples of a power of two, so that their sum does not depend on its order.
//
// Half-precision numbers are multiples of 2^-24 below 2^16, so 2^23 of them are summed in 64 bits without any rounding.
// Others are rounded once, to the nearest multiple of 2^-40 of the power of two above the largest of them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "millrace/payload/half_floats.h"

namespace millrace::codebook {

inline constexpr uint64_t kSummandsMax = uint64_t{1} << 23; // below 2^40 each, so that a sum stays below 2^63

class Whole {
 public:
  MR_HOST_DEVICE static Whole of_halves() { return Whole(24); }
  // `largest`: the greatest magnitude of all numbers.
  MR_HOST_DEVICE static Whole below(double largest) { return within(largest, kBits); }
  // For numbers that are summed to no more than `largest`.
  MR_HOST_DEVICE static Whole sums_to(double largest) { return within(largest, kExactBits); }

  // The number in units, rounded to the nearest, ties to even. Its magnitude is at most 2^50 units.
  [[gnu::always_inline]] MR_HOST_DEVICE int64_t of(double number) const {
    // Added to 1.5 · 2^52, whose last bit counts as 1, a number is rounded to a whole one.
    constexpr double kLast = 0x1.8p52;
    return std::bit_cast<int64_t>(number * times_ + kLast) - std::bit_cast<int64_t>(kLast);
  }
  // The power of two above the largest number, for which below() chose the unit.
  MR_HOST_DEVICE double largest() const { return number(int64_t{1} << kBits); }
  [[gnu::always_inline]] MR_HOST_DEVICE double number(int64_t units) const {
    return static_cast<double>(units) * unit_;
  }

 private:
  static constexpr int kBits = 40, kExactBits = 50;
  MR_HOST_DEVICE static Whole within(double largest, int bits) {
    int exponent = 0;
    std::frexp(largest, &exponent); // largest < 2^exponent
    return Whole(largest > 0 ? bits - exponent : 0);
  }
  MR_HOST_DEVICE explicit Whole(int bits) : times_(std::ldexp(1.0, bits)), unit_(std::ldexp(1.0, -bits)) {}

  double times_, unit_;
};

} // namespace millrace::codebook
