// The values of 16-bit floating-point tensors: conversions, and their place in tensors.
#include <doctest/doctest.h>
#include <millrace/payload/half_floats.h>
#include <millrace/testing/value.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/seed.h"

using namespace millrace;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The nearest value of a 16-bit type by trying both neighbours, the one with an even last bit where they are as near.
template <class Half>
uint16_t nearest(float value) {
  uint16_t below = 0; // the greatest number that is not above
  const float magnitude = std::abs(value);
  for (uint32_t bit = 0x4000; bit != 0; bit >>= 1)
    if (float{Half::of_bits(static_cast<uint16_t>(below | bit))} <= magnitude)
      below = static_cast<uint16_t>(below | bit);
  const double low = float{Half::of_bits(below)}, high = float{Half::of_bits(static_cast<uint16_t>(below + 1))};
  // Infinity stands where the next number would be.
  const double last = low - double{float{Half::of_bits(static_cast<uint16_t>(below - 1))}};
  const double next = std::isinf(high) ? low + last : high;
  const double to_low = magnitude - low, to_high = next - magnitude;
  const bool up = to_high < to_low || (to_high == to_low && (below & 1));
  const auto chosen = static_cast<uint16_t>(below + (std::isinf(low) ? 0 : up));
  return static_cast<uint16_t>(chosen | (std::signbit(value) ? 0x8000 : 0));
}

template <class Half>
void each_is_read_back() {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = Half::of_bits(static_cast<uint16_t>(bits));
    if (std::isnan(value))
      REQUIRE(std::isnan(float{Half(value)}));
    else
      REQUIRE(Half(value).bits == bits);
  }
}

template <class Half>
void random_floats_round_to_the_nearest() {
  const uint32_t seed = random_seed();
  INFO("MILLRACE_SEED=", seed);
  std::mt19937_64 draw(seed);
  for (int n = 0; n < 200'000; ++n) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(draw()));
    if (std::isnan(value)) continue;
    REQUIRE(Half(value).bits == nearest<Half>(value));
  }
}

} // namespace

TEST_CASE("every 16-bit number becomes a float and is read back exactly") {
  each_is_read_back<Float16>();
  each_is_read_back<BFloat16>();
}

TEST_CASE("floats are rounded to the nearest 16-bit number, ties to even") {
  random_floats_round_to_the_nearest<Float16>();
  random_floats_round_to_the_nearest<BFloat16>();
  CHECK(Float16(1 + 1.0f / 2048).bits == Float16(1).bits);
  CHECK(Float16(1 + 3.0f / 2048).bits == Float16(1 + 4.0f / 2048).bits);
  CHECK(Float16(65519).bits == 0x7bff);
  CHECK(Float16(65520).bits == 0x7c00);
  CHECK(Float16(-kInfinity).bits == 0xfc00);
  CHECK(Float16(std::ldexp(1.5f, -25)).bits == 1);
  CHECK(Float16(std::ldexp(1.0f, -25)).bits == 0);
  CHECK(std::isnan(float{Float16(std::numeric_limits<float>::quiet_NaN())}));

  CHECK(BFloat16(1 + 1.0f / 256).bits == BFloat16(1).bits);
  CHECK(BFloat16(1 + 3.0f / 256).bits == BFloat16(1 + 4.0f / 256).bits);
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(BFloat16(-kInfinity).bits == 0xff80);
  CHECK(std::isnan(float{BFloat16(std::bit_cast<float>(0x7f800001u))})); // rounded, it would be infinite
}

TEST_CASE("elements() gives the 16-bit numbers of a tensor, and refuses those of another type") {
  const testing::Value halves = testing::tensor<Float16>({2}, {Float16(0.5f), Float16(-2)});
  const TensorSpan view = halves.tensor();
  CHECK(view.dtype() == DType{MR_DTYPE_FLOAT, 16});
  CHECK(view.elements<Float16>()[0] + view.elements<Float16>()[1] == -1.5f);
  CHECK_THROWS_WITH_AS(view.elements<BFloat16>(), "the tensor holds float16, not bfloat16", std::invalid_argument);
  const testing::Value wide = testing::tensor<BFloat16>({1}, {BFloat16(3.0e38f)});
  CHECK(float{wide.tensor().elements<BFloat16>()[0]} == doctest::Approx(3.0e38f).epsilon(0.01));
}
