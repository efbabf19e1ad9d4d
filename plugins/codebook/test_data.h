// Made-up vectors that every machine makes with the same bytes.
#pragma once

#include <cstdint>
#include <span>

#include "millrace/payload/half_floats.h"

namespace millrace::codebook {

// Element j of vector i is f16(5·(i mod 3) + 0.5·s). s is the sine of the single-precision number 0.1f·float(i·d + j),
// taken in double precision and rounded to single; sinf() differs between libraries. The published tests of annealed
// codebooks use these data. `vectors` has room for count × dimensions numbers.
void make_waves(uint32_t dimensions, std::span<Float16> vectors);

// A mixture of `centers` Gaussians whose means are drawn from ±5 and whose deviation is `spread`. Vector i belongs to
// mean i mod centers. Numbers are drawn with Draw, normal ones as the sum of twelve uniform ones less six, so that no
// logarithm of a library has a say.
void make_mixture(uint32_t dimensions, uint32_t centers, float spread, uint64_t seed, std::span<Float16> vectors);

} // namespace millrace::codebook
