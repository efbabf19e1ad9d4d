// Mixes two neighbouring pixels of a resized NV12 picture from the words that hold all of their samples; mixed() of
// patch.h loads each sample by itself.
//
// A window is four neighbouring columns: two neighbouring pixels cover that many up to a scale of 2, and one pixel up
// to a scale of 3. Each column of the window has a weight, 0 outside the footprint, so nothing depends on the
// footprints' place in the window. Sums differ from those of mixed() only by the rounding of single precision.
#pragma once

#include <cstdint>
#include <cstring>

#include "handlers/gpu/footprint.h"
#include "handlers/gpu/sample_mix.h"

namespace millrace::handlers::gpu {

inline constexpr int32_t kWindowColumns = 4, kWindowPairs = 3;

// The place of a window's words: one word or two, at the same distance from the beginning of each row of luma and of
// chroma.
struct Window {
  uint32_t word; // bytes from the row's beginning
  bool two_words;
  uint32_t luma_shift, chroma_shift;
};

// `last` is at most `first` + 3.
MR_BOTH inline Window window_of(int32_t first, int32_t last) {
  const auto from = static_cast<uint32_t>(first), to = static_cast<uint32_t>(last), word = from & ~3u;
  return {word, (to & ~3u) != word, (from & 3) * 8, (from & 2) * 8};
}

struct WindowWeights {
  float luma[kWindowColumns], chroma[kWindowPairs];
};

// The weights of a footprint in a window that begins at `first`.
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

// True if rows begin at multiples of four bytes and 32 bits can count the bytes of a plane.
inline bool has_windows(const SampleSource& source) {
  const auto fits = [&](int plane) {
    return reinterpret_cast<uintptr_t>(source.planes[plane]) % 4 == 0 && source.strides[plane] % 4 == 0 &&
           uint64_t{source.strides[plane]} * static_cast<uint32_t>(source.height) <= UINT32_MAX;
  };
  return fits(0) && fits(1);
}

struct WindowWords {
  uint32_t first, last;
};
MR_BOTH inline WindowWords window_words(const uint8_t* plane, uint32_t stride, int32_t y, const Window& window) {
  const uint8_t* at = plane + (static_cast<uint32_t>(y) * stride + window.word);
  WindowWords words;
#ifdef __CUDA_ARCH__
  words.first = words.last = *reinterpret_cast<const uint32_t*>(at);
  if (window.two_words) words.last = *reinterpret_cast<const uint32_t*>(at + 4);
#else
  memcpy(&words.first, at, 4);
  memcpy(&words.last, window.two_words ? at + 4 : at, 4);
#endif
  return words;
}

// The words' bytes from bit `shift` on.
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
  // Puts the byte into the lowest bits of 2^23, which count units, and subtracts 2^23. These two instructions run in
  // other pipelines than conversions do.
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u + kByte)) - 8388608.0f;
#else
  return static_cast<float>(word >> 8 * kByte & 255);
#endif
}

// The sums of one row for two neighbouring pixels.
struct LumaPair {
  float left = 0, right = 0;
};
struct ChromaPair {
  float left_u = 0, left_v = 0, right_u = 0, right_v = 0;
};

MR_BOTH inline float mix_luma(uint32_t luma, const WindowWeights& weights) {
  return number_of_byte<0>(luma) * weights.luma[0] + number_of_byte<1>(luma) * weights.luma[1] +
         number_of_byte<2>(luma) * weights.luma[2] + number_of_byte<3>(luma) * weights.luma[3];
}
MR_BOTH inline float mix_u(uint32_t two, uint32_t third, const WindowWeights& weights) {
  return number_of_byte<0>(two) * weights.chroma[0] + number_of_byte<2>(two) * weights.chroma[1] +
         number_of_byte<0>(third) * weights.chroma[2];
}
MR_BOTH inline float mix_v(uint32_t two, uint32_t third, const WindowWeights& weights) {
  return number_of_byte<1>(two) * weights.chroma[0] + number_of_byte<3>(two) * weights.chroma[1] +
         number_of_byte<1>(third) * weights.chroma[2];
}

// Mixes two neighbouring columns of a patch row by row, from top to bottom, both from one window or each from its own.
// A picture row that the previous patch row used is not loaded again: at a scale of 1 that halves the work, and the
// work on chroma once more.
template <uint32_t kWindows>
class PairMixer {
 public:
  static_assert(kWindows == 1 || kWindows == 2);

  MR_BOTH PairMixer(const SampleSource& source, const Footprint& left, const Footprint& right)
      : source_(source),
        windows_{window_of(left.first, kWindows == 1 ? right.last : left.last)},
        left_(window_weights(left, left.first)),
        right_(window_weights(right, kWindows == 1 ? left.first : right.first)) {
    if constexpr (kWindows == 2) windows_[1] = window_of(right.first, right.last);
  }

  // The means of both pixels. `rows` must not be above those of the previous call.
  MR_BOTH void mix(const Footprint& rows, Sample (&pixels)[2]) {
    hold(rows);
    const float first = rows.first_weight, last = rows.last_weight;
    pixels[0] = {luma_[0].left * first + luma_[1].left * last, chroma_[0].left_u * first + chroma_[1].left_u * last,
                 chroma_[0].left_v * first + chroma_[1].left_v * last};
    pixels[1] = {luma_[0].right * first + luma_[1].right * last, chroma_[0].right_u * first + chroma_[1].right_u * last,
                 chroma_[0].right_v * first + chroma_[1].right_v * last};
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (int32_t y = rows.first + 1; y < rows.last; ++y) {
      const LumaPair luma = luma_of(luma_at(y));
      const ChromaPair chroma = chroma_of(chroma_at(y >> 1));
      add(pixels[0], luma.left, chroma.left_u, chroma.left_v, rows.inner_weight);
      add(pixels[1], luma.right, chroma.right_u, chroma.right_v, rows.inner_weight);
    }
  }

 private:
  struct Words {
    WindowWords of[kWindows];
  };

  MR_BOTH static void add(Sample& sum, float luma, float u, float v, float weight) {
    sum.a += luma * weight;
    sum.b += u * weight;
    sum.c += v * weight;
  }

  MR_BOTH Words words_at(uint32_t plane, int32_t y) const {
    Words words;
    MR_UNROLL
    for (uint32_t w = 0; w < kWindows; ++w)
      words.of[w] = window_words(source_.planes[plane], source_.strides[plane], y, windows_[w]);
    return words;
  }
  MR_BOTH Words luma_at(int32_t y) const { return words_at(0, y); }
  MR_BOTH Words chroma_at(int32_t pair) const { return words_at(1, pair); }
  MR_BOTH LumaPair luma_of(const Words& words) const {
    return {mix_luma(cut_from(words.of[0], windows_[0].luma_shift), left_),
            mix_luma(cut_from(words.of[kWindows - 1], windows_[kWindows - 1].luma_shift), right_)};
  }
  MR_BOTH ChromaPair chroma_of(const Words& words) const {
    const WindowWords &left = words.of[0], &right = words.of[kWindows - 1];
    const uint32_t shift = windows_[0].chroma_shift, right_shift = windows_[kWindows - 1].chroma_shift;
    const uint32_t two = cut_from(left, shift), third = left.last >> shift;
    const uint32_t right_two = cut_from(right, right_shift), right_third = right.last >> right_shift;
    return {mix_u(two, third, left_), mix_v(two, third, left_), mix_u(right_two, right_third, right_),
            mix_v(right_two, right_third, right_)};
  }

  // Provides the rows at both ends of the footprint. Missing ones are all loaded before any of them is used. A last row
  // that is also the first has no weight.
  MR_BOTH void hold(const Footprint& rows) {
    const int32_t first_pair = rows.first >> 1, last_pair = rows.last >> 1;
    const bool moves = rows.first == rows_[1] && rows.first != rows_[0];
    const bool loads_first = rows.first != rows_[0] && rows.first != rows_[1];
    const bool loads_last = rows.last != rows_[1] && rows.last != rows.first;
    const bool moves_pair = first_pair == pairs_[1] && first_pair != pairs_[0];
    const bool loads_first_pair = first_pair != pairs_[0] && first_pair != pairs_[1];
    const bool loads_last_pair = last_pair != pairs_[1] && last_pair != first_pair;
    Words first, last, first_chroma, last_chroma;
    if (loads_first) first = luma_at(rows.first);
    if (loads_last) last = luma_at(rows.last);
    if (loads_first_pair) first_chroma = chroma_at(first_pair);
    if (loads_last_pair) last_chroma = chroma_at(last_pair);
    if (moves) luma_[0] = luma_[1];
    if (loads_first) luma_[0] = luma_of(first);
    if (loads_last) luma_[1] = luma_of(last), rows_[1] = rows.last;
    rows_[0] = rows.first;
    if (moves_pair) chroma_[0] = chroma_[1];
    if (loads_first_pair) chroma_[0] = chroma_of(first_chroma);
    if (loads_last_pair) chroma_[1] = chroma_of(last_chroma), pairs_[1] = last_pair;
    if (last_pair == first_pair) chroma_[1] = chroma_[0], pairs_[1] = first_pair;
    pairs_[0] = first_pair;
  }

  const SampleSource& source_;
  Window windows_[kWindows];
  WindowWeights left_, right_;
  int32_t rows_[2] = {-1, -1}, pairs_[2] = {-1, -1}; // the rows that are loaded
  LumaPair luma_[2];
  ChromaPair chroma_[2];
};

} // namespace millrace::handlers::gpu
