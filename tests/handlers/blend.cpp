// Every mode of blending against its formula in doubles.
#include "handlers/image/blend.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/handlers/blend_modes.h"

using namespace millrace::handlers;

namespace {

double blended(BlendMode mode, double cb, double cs) {
  switch (mode) {
    case BlendMode::over: return cs;
    case BlendMode::add: return std::min(cb + cs, 1.0);
    case BlendMode::subtract: return std::max(cb - cs, 0.0);
    case BlendMode::multiply: return cb * cs;
    case BlendMode::screen: return cb + cs - cb * cs;
    case BlendMode::darken: return std::min(cb, cs);
    case BlendMode::lighten: return std::max(cb, cs);
    case BlendMode::difference: return std::abs(cb - cs);
  }
  return 0;
}

// Random, the ends more often than chance would have them.
std::vector<uint8_t> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) {
    const auto bits = static_cast<uint32_t>(random());
    byte = bits % 8 == 0 ? (bits & 0x100 ? uint8_t{255} : uint8_t{0}) : static_cast<uint8_t>(bits >> 16);
  }
  return bytes;
}

} // namespace

TEST_CASE("every pair of bytes is blended as the mode's formula says, rounded to nearest") {
  std::vector<uint8_t> above(65536), below(65536);
  for (BlendMode mode : kBlendModes) {
    for (size_t i = 0; i < 65536; ++i) above[i] = static_cast<uint8_t>(i), below[i] = static_cast<uint8_t>(i >> 8);
    blend_pixels(mode, above.data(), nullptr, 255, 1, 65536, below.data());
    uint64_t wrong = 0;
    for (size_t i = 0; i < 65536; ++i) {
      const double cs = static_cast<double>(i & 255) / 255, cb = static_cast<double>(i >> 8) / 255;
      wrong += std::abs(below[i] - 255 * blended(mode, cb, cs)) > 0.5 + 1e-9;
    }
    INFO("mode " << static_cast<int>(mode));
    CHECK(wrong == 0);
  }
}

TEST_CASE("opacity and alpha weigh each mode, to within the roundings, whatever the channels and the length") {
  for (BlendMode mode : kBlendModes)
    for (uint32_t channels : {1u, 3u, 4u})
      for (size_t count : {size_t{1}, size_t{17}, size_t{511}, size_t{1300}})
        for (uint8_t opacity : {uint8_t{0}, uint8_t{1}, uint8_t{128}, uint8_t{255}})
          for (bool with_alpha : {false, true}) {
            const std::vector<uint8_t> above = random_bytes(count * channels, 51), alpha = random_bytes(count, 52);
            std::vector<uint8_t> below = random_bytes(count * channels, 53);
            if (channels == 4)
              for (size_t i = 0; i < count; ++i) below[4 * i + 3] = 255;
            const std::vector<uint8_t> before = below;
            blend_pixels(mode, above.data(), with_alpha ? alpha.data() : nullptr, opacity, channels, count,
                         below.data());
            double worst = 0;
            for (size_t i = 0; i < count * channels; ++i) {
              if (channels == 4 && i % 4 == 3) {
                worst = std::max(worst, std::abs(below[i] - 255.0));
                continue;
              }
              const uint8_t own = channels == 4 ? above[i / 4 * 4 + 3]
                                  : with_alpha  ? alpha[i / channels]
                                                : uint8_t{255};
              const double as = own / 255.0 * opacity / 255.0;
              const double cb = before[i] / 255.0, cs = above[i] / 255.0;
              worst = std::max(worst, std::abs(255 * ((1 - as) * cb + as * blended(mode, cb, cs)) - below[i]));
            }
            INFO("mode " << static_cast<int>(mode) << ", " << channels << " channels, " << count << " pixels, opacity "
                         << int{opacity} << ", alpha " << with_alpha);
            CHECK(worst < (opacity == 255 ? 1.0001 : 1.5001));
          }
}

TEST_CASE("over what is translucent, colour and alpha are those of the standard") {
  for (BlendMode mode : kBlendModes)
    for (uint8_t opacity : {uint8_t{0}, uint8_t{100}, uint8_t{255}}) {
      constexpr size_t kCount = 3000;
      const std::vector<uint8_t> above = random_bytes(kCount * 4, 54);
      std::vector<uint8_t> below = random_bytes(kCount * 4, 55);
      const std::vector<uint8_t> before = below;
      blend_translucent(mode, above.data(), opacity, kCount, below.data());
      double worst = 0;
      for (size_t i = 0; i < kCount; ++i) {
        const double as = above[4 * i + 3] / 255.0 * opacity / 255.0, ab = before[4 * i + 3] / 255.0;
        const double ao = as + ab - as * ab;
        worst = std::max(worst, std::abs(255 * ao - below[4 * i + 3]));
        for (size_t c = 4 * i; ao > 0 && c < 4 * i + 3; ++c) {
          const double cb = before[c] / 255.0, cs = above[c] / 255.0;
          const double sum = (1 - as) * ab * cb + as * (1 - ab) * cs + as * ab * blended(mode, cb, cs);
          worst = std::max(worst, std::abs(255 * sum / ao - below[c]));
        }
      }
      INFO("mode " << static_cast<int>(mode) << ", opacity " << int{opacity});
      CHECK(worst <= 1.001);
    }
}

TEST_CASE("where both sides are opaque, the translucent way and the opaque one agree to within a unit") {
  constexpr size_t kCount = 500;
  std::vector<uint8_t> above = random_bytes(kCount * 4, 56), below = random_bytes(kCount * 4, 57);
  for (size_t i = 0; i < kCount; ++i) above[4 * i + 3] = below[4 * i + 3] = 255;
  for (BlendMode mode : kBlendModes) {
    std::vector<uint8_t> one = below, other = below;
    blend_pixels(mode, above.data(), nullptr, 90, 4, kCount, one.data());
    blend_translucent(mode, above.data(), 90, kCount, other.data());
    int worst = 0;
    for (size_t i = 0; i < kCount * 4; ++i) worst = std::max(worst, std::abs(int{one[i]} - int{other[i]}));
    CHECK(worst <= 1);
  }
}
