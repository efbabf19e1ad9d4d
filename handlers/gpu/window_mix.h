// Mixes two neighbours of a resized NV12 picture from the words that hold all of their samples, where mixed() of
// patch.h loads each sample by itself.
//
// A window is four columns beside each other, which is what two neighbours cover up to a scale of 2, and one alone up
// to a scale of 3. The weights are of the window's columns, 0 where a footprint is not, so nothing depends on where in
// the window the footprints lie. Sums differ from those of mixed() by the rounding of single precision only.
#pragma once

#include <cstdint>
#include <cstring>

#include "handlers/gpu/footprint.h"
#include "handlers/gpu/sample_mix.h"

namespace millrace::handlers::gpu {

inline constexpr int32_t kWindowColumns = 4, kWindowPairs = 3;

// Where a window's words are in a row, of luma and of chroma alike. The second is the first again where one holds all.
struct Window {
  uint32_t first_word, last_word; // bytes
  uint32_t luma_shift, chroma_shift;
};

// `last` is at most three behind `first`.
MR_BOTH inline Window window_of(int32_t first, int32_t last) {
  const auto from = static_cast<uint32_t>(first), to = static_cast<uint32_t>(last);
  return {from & ~3u, to & ~3u, (from & 3) * 8, (from & 2) * 8};
}

struct WindowWeights {
  float luma[kWindowColumns], chroma[kWindowPairs];
};

// Of a footprint in a window that begins at `first`.
MR_BOTH inline WindowWeights window_weights(const Footprint& columns, int32_t first) {
  WindowWeights weights;
  float* luma = weights.luma;
  MR_UNROLL
  for (int32_t i = 0; i < kWindowColumns; ++i) {
    const int32_t x = first + i;
    const float inner = x > columns.first && x < columns.last ? columns.inner_weight : 0;
    luma[i] = x == columns.first ? columns.first_weight : x == columns.last ? columns.last_weight : inner;
  }
  const bool odd = first % 2 != 0;
  weights.chroma[0] = odd ? luma[0] : luma[0] + luma[1];
  weights.chroma[1] = odd ? luma[1] + luma[2] : luma[2] + luma[3];
  weights.chroma[2] = odd ? luma[3] : 0;
  return weights;
}

// The rows of such a picture begin at multiples of four bytes.
inline bool has_windows(const SampleSource& source) {
  const auto whole = [&](int plane) {
    return reinterpret_cast<uintptr_t>(source.planes[plane]) % 4 == 0 && source.strides[plane] % 4 == 0;
  };
  return whole(0) && whole(1);
}

struct WindowWords {
  uint32_t first, last;
};
MR_BOTH inline WindowWords window_words(const SampleSource& source, int plane, int32_t y, const Window& window) {
  const uint8_t* row = source.planes[plane] + static_cast<size_t>(y) * source.strides[plane];
#ifdef __CUDA_ARCH__
  return {*reinterpret_cast<const uint32_t*>(row + window.first_word),
          *reinterpret_cast<const uint32_t*>(row + window.last_word)};
#else
  WindowWords words{};
  memcpy(&words.first, row + window.first_word, 4);
  memcpy(&words.last, row + window.last_word, 4);
  return words;
#endif
}

// The words' bytes from that bit on.
MR_BOTH inline uint32_t cut_from(const WindowWords& words, uint32_t shift) {
#ifdef __CUDA_ARCH__
  return __funnelshift_r(words.first, words.last, shift);
#else
  return static_cast<uint32_t>((uint64_t{words.last} << 32 | words.first) >> shift);
#endif
}

template <uint32_t kByte>
MR_BOTH inline float number_of_byte(uint32_t word) {
#ifdef __CUDA_ARCH__
  // In the lowest bits of 2^23, which are units: two instructions that take turns of other ones than conversions do.
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u + kByte)) - 8388608.0f;
#else
  return static_cast<float>(word >> 8 * kByte & 255);
#endif
}

// Adds a row of luma to the pixels' sums.
template <uint32_t kPixels>
MR_BOTH inline void add_luma(Sample (&sums)[kPixels], const WindowWords& words, const Window& window,
                             const WindowWeights* weights, float weight) {
  const uint32_t luma = cut_from(words, window.luma_shift);
  const float a = number_of_byte<0>(luma), b = number_of_byte<1>(luma);
  const float c = number_of_byte<2>(luma), d = number_of_byte<3>(luma);
  MR_UNROLL
  for (uint32_t i = 0; i < kPixels; ++i) {
    const float* of = weights[i].luma;
    sums[i].a += (a * of[0] + b * of[1] + c * of[2] + d * of[3]) * weight;
  }
}
template <uint32_t kPixels>
MR_BOTH inline void add_chroma(Sample (&sums)[kPixels], const WindowWords& words, const Window& window,
                               const WindowWeights* weights, float weight) {
  const uint32_t two = cut_from(words, window.chroma_shift), third = words.last >> window.chroma_shift;
  const float u[kWindowPairs] = {number_of_byte<0>(two), number_of_byte<2>(two), number_of_byte<0>(third)};
  const float v[kWindowPairs] = {number_of_byte<1>(two), number_of_byte<3>(two), number_of_byte<1>(third)};
  MR_UNROLL
  for (uint32_t i = 0; i < kPixels; ++i) {
    const float* of = weights[i].chroma;
    sums[i].b += (u[0] * of[0] + u[1] * of[1] + u[2] * of[2]) * weight;
    sums[i].c += (v[0] * of[0] + v[1] * of[1] + v[2] * of[2]) * weight;
  }
}

// The means of the pixels whose columns lie in one window. `weights` has kPixels.
template <uint32_t kPixels>
MR_BOTH inline void mix_window(const SampleSource& source, const Window& window, const WindowWeights* weights,
                               const Footprint& rows, Sample (&sums)[kPixels]) {
  const WindowWords above = window_words(source, 0, rows.first, window);
  const WindowWords below = window_words(source, 0, rows.last, window);
  const WindowWords chroma_above = window_words(source, 1, rows.first >> 1, window);
  const WindowWords chroma_below = window_words(source, 1, rows.last >> 1, window);
  MR_UNROLL
  for (Sample& sum : sums) sum = {0, 0, 0};
  add_luma(sums, above, window, weights, rows.first_weight);
  add_luma(sums, below, window, weights, rows.last_weight);
  if (rows.first >> 1 == rows.last >> 1) {
    add_chroma(sums, chroma_above, window, weights, rows.first_weight + rows.last_weight);
  } else {
    add_chroma(sums, chroma_above, window, weights, rows.first_weight);
    add_chroma(sums, chroma_below, window, weights, rows.last_weight);
  }
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (int32_t y = rows.first + 1; y < rows.last; ++y) {
    add_luma(sums, window_words(source, 0, y, window), window, weights, rows.inner_weight);
    add_chroma(sums, window_words(source, 1, y >> 1, window), window, weights, rows.inner_weight);
  }
}

} // namespace millrace::handlers::gpu
