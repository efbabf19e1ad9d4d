// A row of a picture while marks are painted onto it: its channels in single precision, so that each pixel is rounded
// once.
#pragma once

#include <millrace/payload.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "handlers/gpu/mark_shapes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace millrace::handlers {

// Columns are worked on in fours, which begin anywhere. The last four of a row may end beyond it.
inline constexpr int32_t kFour = 4;

// The channels of a pixel, as the picture has them; the rest is unused.
using Channels = draw::FourFloats;

// The last channel is the canvas's alpha, which grows towards opaque.
inline Channels ink_of_layer(const float* color) {
  Channels ink = draw::load_four(color);
  ink[3] = 255;
  return ink;
}

template <uint32_t kBytes>
Channels load_pixel(const uint8_t* from) {
  Channels channels{};
  for (uint32_t c = 0; c < kBytes; ++c) channels[c] = from[c];
  return channels;
}

// Four pixels next to each other.
struct FourPixels {
  Channels pixels[kFour];
};

template <uint32_t kBytes>
FourPixels load_four_pixels(const uint8_t* from) {
#ifdef __SSE2__
  if constexpr (kBytes == 4) {
    const __m128i zero = _mm_setzero_si128(), bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m128i low = _mm_unpacklo_epi8(bytes, zero), high = _mm_unpackhi_epi8(bytes, zero);
    return {{_mm_cvtepi32_ps(_mm_unpacklo_epi16(low, zero)), _mm_cvtepi32_ps(_mm_unpackhi_epi16(low, zero)),
             _mm_cvtepi32_ps(_mm_unpacklo_epi16(high, zero)), _mm_cvtepi32_ps(_mm_unpackhi_epi16(high, zero))}};
  }
#endif
  FourPixels four;
  for (int32_t i = 0; i < kFour; ++i) four.pixels[i] = load_pixel<kBytes>(from + i * kBytes);
  return four;
}

// Rounds to nearest.
template <uint32_t kBytes>
void store_pixel(const Channels& channels, uint8_t* to) {
#ifdef __SSE2__
  const __m128i numbers = _mm_cvttps_epi32(channels + 0.5f), words = _mm_packs_epi32(numbers, numbers);
  const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words)); // both keep to the ends of their range
  std::memcpy(to, &bytes, kBytes);
#else
  for (uint32_t c = 0; c < kBytes; ++c) to[c] = static_cast<uint8_t>(draw::clamped(channels[c], 0, 255) + 0.5f);
#endif
}

template <uint32_t kBytes>
void store_four_pixels(const Channels* channels, uint8_t* to) {
#ifdef __SSE2__
  if constexpr (kBytes == 4) {
    const auto rounded = [&](int32_t i) { return _mm_cvttps_epi32(channels[i] + 0.5f); };
    const __m128i bytes =
        _mm_packus_epi16(_mm_packs_epi32(rounded(0), rounded(1)), _mm_packs_epi32(rounded(2), rounded(3)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    return;
  }
#endif
  for (int32_t i = 0; i < kFour; ++i) store_pixel<kBytes>(channels[i], to + i * kBytes);
}

// kBytes: those of a pixel. A row is used until store(), then another one can begin.
class MarkRow {
 public:
  void reserve(uint32_t width) {
    channels_.reserve(width + kFour);
    is_loaded_.reserve(width + kFour);
    loaded_.reserve(width);
  }
  void begin(uint32_t width, bool adds) {
    const float kept = adds ? 0 : 1;
    kept_ = Channels{kept, kept, kept, 1};
    width_ = static_cast<int32_t>(width);
    channels_.resize(width + kFour);
    is_loaded_.assign(width + kFour, 0);
    loaded_.resize(width); // a column begins a four at most once
    loaded_count_ = 0;
  }
  void go_to(uint8_t* bytes) { bytes_ = bytes; }

  // Blends an ink into four columns, each with its alpha. An alpha of 0 changes nothing.
  template <uint32_t kBytes>
  void blend(int32_t column, const Channels& ink, const draw::FourFloats& alpha) {
    const FourPixels before = load<kBytes>(column);
    Channels* const channels = channels_.data() + column;
    const Channels kept = kept_;
#pragma GCC unroll 4
    for (int32_t i = 0; i < kFour; ++i) channels[i] = before.pixels[i] + (ink - kept * before.pixels[i]) * alpha[i];
  }
  // Blends an ink into one column that was fetched.
  void blend_one(int32_t column, const Channels& ink, float alpha) {
    Channels& channels = channels_[static_cast<size_t>(column)];
    channels += (ink - kept_ * channels) * alpha;
  }

  // For blend_one(): of the four columns from this one on.
  template <uint32_t kBytes>
  void fetch(int32_t column) {
    const FourPixels four = load<kBytes>(column);
    std::copy(four.pixels, four.pixels + kFour, channels_.begin() + column);
  }

  template <uint32_t kBytes>
  void store() {
    for (size_t n = 0; n < loaded_count_; ++n) {
      const int32_t column = loaded_[n];
      uint8_t* const is_loaded = is_loaded_.data() + column;
      uint8_t* const to = bytes_ + ptrdiff_t{column} * kBytes;
      const Channels* const channels = channels_.data() + column;
      if (flags_at(is_loaded) == kAllLoaded && column + kFour <= width_) {
        store_four_pixels<kBytes>(channels, to);
      } else { // others have stored some
        for (int32_t i = 0; i < std::min(width_ - column, kFour); ++i)
          if (is_loaded[i]) store_pixel<kBytes>(channels[i], to + i * kBytes);
      }
      std::memset(is_loaded, 0, kFour);
    }
    loaded_count_ = 0;
  }

 private:
  static constexpr uint32_t kAllLoaded = 0x01010101;
  static uint32_t flags_at(const uint8_t* is_loaded) {
    uint32_t flags;
    std::memcpy(&flags, is_loaded, sizeof flags);
    return flags;
  }

  // Gives the four columns from this one on. They count as loaded, so that the caller puts them into channels_.
  template <uint32_t kBytes>
  FourPixels load(int32_t column) {
    uint8_t* const is_loaded = is_loaded_.data() + column;
    const uint8_t* const from = bytes_ + ptrdiff_t{column} * kBytes;
    const Channels* const channels = channels_.data() + column;
    const uint32_t flags = flags_at(is_loaded);
    FourPixels four;
    if (flags == kAllLoaded) {
      std::copy(channels, channels + kFour, four.pixels);
      return four;
    }
    loaded_[loaded_count_++] = column;
    if (flags == 0 && column + kFour <= width_) {
      four = load_four_pixels<kBytes>(from);
    } else {
      for (int32_t i = 0; i < kFour; ++i)
        four.pixels[i] = is_loaded[i] || column + i >= width_ ? channels[i] : load_pixel<kBytes>(from + i * kBytes);
    }
    std::memcpy(is_loaded, &kAllLoaded, sizeof kAllLoaded);
    return four;
  }

  Channels kept_{}; // the part of a channel that its colour replaces: all of it, or nothing if colours are added
  int32_t width_ = 0;
  std::vector<Channels> channels_;
  std::vector<uint8_t> is_loaded_; // by column
  std::vector<int32_t> loaded_;    // the first columns of fours that were loaded
  size_t loaded_count_ = 0;
  uint8_t* bytes_ = nullptr;
};

} // namespace millrace::handlers
