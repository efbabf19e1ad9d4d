// The samples of a plane as kernels know them when they are compiled, so that a sample is a word in a register.
#pragma once

#include <cstdint>
#include <type_traits>

#include "handlers/gpu/both.h"
#include "handlers/image/planes.h"

namespace millrace::handlers::gpu {

// One to four channels of 8 bits, or one or two of 16 with ten bits at the top. The first channel is the lowest.
template <uint32_t kChannelCount, uint32_t kNumberBits>
struct Samples {
  static constexpr uint32_t kChannels = kChannelCount, kBits = kNumberBits, kBytes = kChannels * kBits / 8;
  using Number = std::conditional_t<kBits == 8, uint8_t, uint16_t>;

  MR_BOTH static Number channel(uint32_t sample, uint32_t c) {
    return static_cast<Number>((sample >> (kBits * c)) & (kBits == 16 ? kTenBits : 0xFF));
  }
  MR_BOTH static uint32_t with(uint32_t number, uint32_t c) { return number << (kBits * c); }
};

// Calls use(Samples<…>()) for those of a plane.
template <class Use>
void with_samples(Pixel pixel, uint32_t plane, const Use& use) {
  const bool is_wide = channel_bytes_of(pixel) == 2;
  switch (sample_bytes(pixel, plane)) {
    case 1: return use(Samples<1, 8>());
    case 2: return is_wide ? use(Samples<1, 16>()) : use(Samples<2, 8>());
    case 3: return use(Samples<3, 8>());
    default: return is_wide ? use(Samples<2, 16>()) : use(Samples<4, 8>());
  }
}

} // namespace millrace::handlers::gpu
