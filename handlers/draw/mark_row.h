// A row of a picture while marks are painted onto it: its channels in single precision, so that each pixel is rounded
// once.
#pragma once

#include <millrace/payload.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "handlers/gpu/mark_shapes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace millrace::handlers {

// The columns begin … end − 1 of a row.
struct Columns {
  int32_t begin, end;
};

// The channels of a pixel, as the picture has them; the rest is unused.
using Channels = float __attribute__((vector_size(16)));

// The last channel is the canvas's alpha, which grows towards opaque.
inline Channels ink_of_layer(const float* color) { return Channels{color[0], color[1], color[2], 255}; }

template <uint32_t kBytes>
Channels load_pixel(const uint8_t* from) {
#ifdef __SSE2__
  if constexpr (kBytes == 4) {
    int32_t bytes = 0;
    std::memcpy(&bytes, from, sizeof bytes);
    const __m128i zero = _mm_setzero_si128(), words = _mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), zero);
    return _mm_cvtepi32_ps(_mm_unpacklo_epi16(words, zero));
  }
#endif
  Channels channels{};
  for (uint32_t c = 0; c < kBytes; ++c) channels[c] = from[c];
  return channels;
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

// kBytes: those of a pixel. A row is used until store(), then another one can begin.
class MarkRow {
 public:
  void reserve(size_t stretches, uint32_t width) {
    stretches_.reserve(stretches);
    channels_.reserve(width);
    is_loaded_.reserve(width);
  }
  void begin(uint32_t width, bool adds) {
    const float kept = adds ? 0 : 1;
    kept_ = Channels{kept, kept, kept, 1};
    channels_.resize(width);
    is_loaded_.assign(width, 0);
  }
  void go_to(uint8_t* bytes) { bytes_ = bytes; }

  // Columns that are blended before store().
  void add(const Columns& stretch) { stretches_.push_back(stretch); }

  // Gives a function that blends a colour into a column with an alpha. It holds copies of what it needs. Members would
  // be loaded again after each store of a byte, which could have changed them.
  template <uint32_t kBytes>
  auto blender(const float* color) {
    return [ink = ink_of_layer(color), kept = kept_, channels = channels_.data(), is_loaded = is_loaded_.data(),
            bytes = bytes_](int32_t column, float alpha) {
      const Channels before =
          is_loaded[column] ? channels[column] : load_pixel<kBytes>(bytes + static_cast<size_t>(column) * kBytes);
      is_loaded[column] = 1;
      channels[column] = before + (ink - kept * before) * alpha;
    };
  }

  template <uint32_t kBytes>
  void store() {
    for (const Columns& stretch : stretches_)
      for (int32_t x = stretch.begin; x < stretch.end; ++x) {
        if (!is_loaded_[x]) continue;
        is_loaded_[x] = 0;
        store_pixel<kBytes>(channels_[x], bytes_ + static_cast<size_t>(x) * kBytes);
      }
    stretches_.clear();
  }

 private:
  Channels kept_{}; // the part of a channel that its colour replaces: all of it, or nothing if colours are added
  std::vector<Channels> channels_;
  std::vector<uint8_t> is_loaded_; // by column
  std::vector<Columns> stretches_;
  uint8_t* bytes_ = nullptr;
};

} // namespace millrace::handlers
