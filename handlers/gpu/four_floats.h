// Four numbers at a time, and the functions of single numbers that the rule of marks needs of them. Kernels have single
// numbers alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "handlers/gpu/both.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace millrace::handlers::draw {

// fmaxf() and fminf() treat NaN in another way, so compilers call a library for them. The first two are single
// instructions.
MR_INTO_LOOPS float larger(float a, float b) { return a > b ? a : b; }
MR_INTO_LOOPS float smaller(float a, float b) { return a < b ? a : b; }
MR_INTO_LOOPS float absolute(float number) { return fabsf(number); }
MR_INTO_LOOPS float square_root(float number) { return sqrtf(number); }
MR_INTO_LOOPS float clamped(float number, float low, float high) {
  return number < low ? low : number > high ? high : number;
}

#ifndef __CUDACC__

// Compilers have + − × / and comparisons of these, also with a single number.
using FourFloats = float __attribute__((vector_size(16)));

#ifdef __SSE2__
// GCC makes several instructions of a choice between two, for the sake of NaN.
MR_INTO_LOOPS FourFloats larger(FourFloats a, FourFloats b) { return _mm_max_ps(a, b); }
MR_INTO_LOOPS FourFloats smaller(FourFloats a, FourFloats b) { return _mm_min_ps(a, b); }
MR_INTO_LOOPS FourFloats square_root(FourFloats numbers) { return _mm_sqrt_ps(numbers); }
#else
MR_INTO_LOOPS FourFloats larger(FourFloats a, FourFloats b) { return a > b ? a : b; }
MR_INTO_LOOPS FourFloats smaller(FourFloats a, FourFloats b) { return a < b ? a : b; }
MR_INTO_LOOPS FourFloats square_root(FourFloats numbers) {
  return FourFloats{sqrtf(numbers[0]), sqrtf(numbers[1]), sqrtf(numbers[2]), sqrtf(numbers[3])};
}
#endif
MR_INTO_LOOPS FourFloats larger(FourFloats a, float b) { return larger(a, FourFloats{} + b); }
MR_INTO_LOOPS FourFloats smaller(FourFloats a, float b) { return smaller(a, FourFloats{} + b); }
MR_INTO_LOOPS FourFloats absolute(FourFloats numbers) { return larger(numbers, -numbers); }
MR_INTO_LOOPS FourFloats clamped(FourFloats numbers, float low, float high) {
  return smaller(larger(numbers, low), high);
}

// These take any address of a float.
MR_INTO_LOOPS FourFloats load_four(const float* from) {
  FourFloats numbers;
  std::memcpy(&numbers, from, sizeof numbers);
  return numbers;
}
MR_INTO_LOOPS void store_four(const FourFloats& numbers, float* to) { std::memcpy(to, &numbers, sizeof numbers); }

// True if any of them is more than 0.
MR_INTO_LOOPS bool any_positive(FourFloats numbers) {
#ifdef __SSE2__
  return _mm_movemask_ps(_mm_cmpgt_ps(numbers, _mm_setzero_ps())) != 0;
#else
  return numbers[0] > 0 || numbers[1] > 0 || numbers[2] > 0 || numbers[3] > 0;
#endif
}

// Bit i is set if number i is not above the limit.
MR_INTO_LOOPS uint32_t at_most(FourFloats numbers, float limit) {
#ifdef __SSE2__
  return static_cast<uint32_t>(_mm_movemask_ps(_mm_cmple_ps(numbers, _mm_set1_ps(limit))));
#else
  uint32_t bits = 0;
  for (uint32_t i = 0; i < 4; ++i) bits |= uint32_t{numbers[i] <= limit} << i;
  return bits;
#endif
}

#endif

} // namespace millrace::handlers::draw
