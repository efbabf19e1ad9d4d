// Mixes two neighbouring pixels of a resized NV12 picture in the cases that have to be fast: rows bilinear, and columns
// bilinear or at a third of the picture's width. window_mix.h covers all other sizes.
//
// Rows. A row of the picture is kept in the slot of its parity, and so is a row of chroma: the two rows that are mixed
// are neighbours, so they never share a slot. A row of a patch then needs only a plan of rows and weights by slot,
// which is made once for all columns. Nothing moves between slots as rows age.
//
// Numbers. A byte becomes a float by being put into the lowest bits of 2²³. The subtraction of 2²³ also subtracts 128
// from chroma, the rows' weights include the value of a luma step, and black is the addend of a multiply-add. So luma
// of 0…1 and centred chroma take no extra instruction. Sums differ from those of mixed() only by the rounding of single
// precision.
#pragma once

#include <cmath>
#include <cstdint>

#include "handlers/gpu/window_mix.h"

namespace millrace::handlers::gpu {

// ---- rows -------------------------------------------------------------------------------------------------------

// The rows that a row of the patch is made of and their weights, by slot.
struct alignas(16) RowPlan {
  uint32_t luma[2], chroma[2];
  float luma_weight[2], chroma_weight[2];
};

// `rows` is bilinear, in a picture of that height. All weights are multiplied by `luma_unit` or `chroma_unit`.
MR_BOTH inline RowPlan row_plan(const Footprint& rows, int32_t height, float luma_unit, float chroma_unit) {
  const auto first = static_cast<uint32_t>(rows.first), last = static_cast<uint32_t>(rows.last);
  const uint32_t pair = first >> 1, last_pair = static_cast<uint32_t>(height - 1) >> 1;
  // If both rows share a pair of chroma, the pair's slot has all the weight. The other slot names the next pair,
  // because a row further down needs it.
  const uint32_t next_pair = pair < last_pair ? pair + 1 : pair;
  const bool one_pair = last >> 1 == pair, odd = first % 2 != 0, odd_pair = pair % 2 != 0;
  const float first_luma = rows.first_weight * luma_unit, last_luma = rows.last_weight * luma_unit;
  const float first_chroma = (one_pair ? 1 : rows.first_weight) * chroma_unit;
  const float next_chroma = one_pair ? 0 : rows.last_weight * chroma_unit;
  return {{odd ? last : first, odd ? first : last},
          {odd_pair ? next_pair : pair, odd_pair ? pair : next_pair},
          {odd ? last_luma : first_luma, odd ? first_luma : last_luma},
          {odd_pair ? next_chroma : first_chroma, odd_pair ? first_chroma : next_chroma}};
}

// ---- columns ----------------------------------------------------------------------------------------------------

inline constexpr uint32_t kBiasBits = 0x4b000000u; // 2^23 as a float, whose lowest bits count units
inline constexpr float kBias = 8388608;
inline constexpr float kChromaZero = 128; // for 8 bits, in every matrix and range

MR_BOTH inline float float_of_bits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float number;
  memcpy(&number, &bits, 4);
  return number;
#endif
}

// An address in device memory that differs from thread to thread, and from which rows are reached. Without this, the
// compiler would add the part that is the same in all threads to each row's offset anew, which takes two more
// instructions than one multiply-add of 64 bits.
template <class Byte>
MR_BOTH inline Byte* own_address(Byte* address) {
#ifdef __CUDA_ARCH__
  size_t bits = __cvta_generic_to_global(address);
  asm volatile("" : "+l"(bits));
  return static_cast<Byte*>(__cvta_global_to_generic(bits)); // the compiler still knows that it is in device memory
#else
  return address;
#endif
}
template <class Byte>
MR_BOTH inline Byte* row_at(Byte* first, uint32_t row, uint32_t stride) {
#ifdef __CUDA_ARCH__
  uint64_t offset; // else the compiler makes a product of 64 by 64 bits
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(offset) : "r"(row), "r"(stride));
  return first + offset;
#else
  return first + size_t{row} * stride;
#endif
}

// Selects four of the words' eight bytes; each four bits of `places` name one.
MR_BOTH inline uint32_t four_bytes(const WindowWords& words, uint32_t places) {
#ifdef __CUDA_ARCH__
  return __byte_perm(words.first, words.last, places);
#else
  const uint64_t eight = uint64_t{words.last} << 32 | words.first;
  uint32_t four = 0;
  for (uint32_t i = 0; i < 4; ++i) four |= static_cast<uint32_t>(eight >> 8 * (places >> 4 * i & 7) & 255) << 8 * i;
  return four;
#endif
}

// Adds four bytes, each times a byte of `weights`, to `sum`.
MR_BOTH inline uint32_t add_bytes(uint32_t bytes, uint32_t weights, uint32_t sum) {
#ifdef __CUDA_ARCH__
  return __dp4a(bytes, weights, sum);
#else
  for (uint32_t bit = 0; bit < 32; bit += 8) sum += (bytes >> bit & 255) * (weights >> bit & 255);
  return sum;
#endif
}

// A byte of the word plus kBias.
template <uint32_t kByte>
MR_BOTH inline float biased_byte(uint32_t word) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(__byte_perm(word, kBiasBits, 0x7440u + kByte));
#else
  return float_of_bits(kBiasBits + (word >> 8 * kByte & 255));
#endif
}

// Mixes two pixels at a scale of at most 2, each from two taps of a row.
class TwoTaps {
 public:
  static constexpr float kUnit = 1; // the factor from mixed numbers to sample values

  MR_BOTH TwoTaps(const Footprint& left, const Footprint& right)
      : window_(window_of(left.first, right.last)), left_(left.last_weight), right_(right.last_weight) {
    const auto place = [&](int32_t x) { return static_cast<uint32_t>(x) - window_.word; };
    luma_ = place(left.first) | place(left.last) << 4 | place(right.first) << 8 | place(right.last) << 12;
    u_ = luma_ & 0x6666, v_ = luma_ | 0x1111; // the chroma of two columns lies at the places of their luma
  }
  MR_BOTH const Window& window() const { return window_; }

  MR_BOTH LumaPair luma(const WindowWords& words) const {
    const uint32_t taps = four_bytes(words, luma_);
    return {between<0>(taps, 0, left_), between<2>(taps, 0, right_)};
  }
  MR_BOTH ChromaPair chroma(const WindowWords& words) const {
    const uint32_t u = four_bytes(words, u_), v = four_bytes(words, v_);
    return {between<0>(u, kChromaZero, left_), between<0>(v, kChromaZero, left_), between<2>(u, kChromaZero, right_),
            between<2>(v, kChromaZero, right_)};
  }

 private:
  template <uint32_t kFirst>
  MR_BOTH static float between(uint32_t taps, float zero, float weight) {
    const float first = biased_byte<kFirst>(taps), last = biased_byte<kFirst + 1>(taps);
    return fmaf(last - first, weight, first - (kBias + zero));
  }

  Window window_;
  uint32_t luma_, u_, v_; // places of both pixels' taps
  float left_, right_;    // weights of the last tap of the left and the right pixel
};

// Mixes two pixels at a third of the picture's width, x even: each is the sum of three columns. These six columns are
// in two words, and the first of them begins a pair of chroma.
class Thirds {
 public:
  static constexpr float kUnit = 1.0f / 3;

  MR_BOTH explicit Thirds(uint32_t x)
      : window_(window_of(static_cast<int32_t>(3 * x), static_cast<int32_t>(3 * x + 3))) {
    window_.two_words = true;
  }
  MR_BOTH const Window& window() const { return window_; }

  MR_BOTH LumaPair luma(const WindowWords& words) const {
    const uint32_t four = cut_from(words, window_.luma_shift), others = words.last >> window_.luma_shift;
    return {float_of_bits(add_bytes(four, 0x00010101, kBiasBits)) - kBias,
            float_of_bits(add_bytes(four, 0x01000000, add_bytes(others, 0x00000101, kBiasBits))) - kBias};
  }
  MR_BOTH ChromaPair chroma(const WindowWords& words) const {
    const uint32_t four = cut_from(words, window_.chroma_shift), others = words.last >> window_.chroma_shift;
    constexpr float kNone = kBias + 3 * kChromaZero;
    const auto right = [&](uint32_t of_four, uint32_t of_others) {
      return float_of_bits(add_bytes(four, of_four, add_bytes(others, of_others, kBiasBits))) - kNone;
    };
    return {float_of_bits(add_bytes(four, 0x00010002, kBiasBits)) - kNone,
            float_of_bits(add_bytes(four, 0x01000200, kBiasBits)) - kNone, right(0x00010000, 0x00000002),
            right(0x01000000, 0x00000200)};
  }

 private:
  Window window_;
};

// ---- both -------------------------------------------------------------------------------------------------------

// The picture rows that two neighbouring columns of some rows of a patch are made of. For each row of the patch, call
// load(), do other work while the words arrive, and then call take() and mean(). With kKeep, the rows must go from top
// to bottom, and a picture row that is still in its slot is neither loaded nor mixed again.
template <class Columns, bool kKeep>
class RowSlots {
 public:
  MR_BOTH RowSlots(const SampleSource& source, const Columns& columns)
      : columns_(columns),
        planes_{own_address(source.planes[0] + columns.window().word),
                own_address(source.planes[1] + columns.window().word)},
        strides_{source.strides[0], source.strides[1]},
        black_(-source.numbers.luma_zero * source.numbers.luma_step) {}

  MR_BOTH void load(const RowPlan& plan) {
    MR_UNROLL
    for (uint32_t slot = 0; slot < 2; ++slot) {
      if (!has(luma_rows_[slot], plan.luma[slot])) read(0, plan.luma[slot], luma_words_[slot]);
      if (!has(chroma_rows_[slot], plan.chroma[slot])) read(1, plan.chroma[slot], chroma_words_[slot]);
    }
  }

  MR_BOTH void take(const RowPlan& plan) {
    MR_UNROLL
    for (uint32_t slot = 0; slot < 2; ++slot) {
      if (!has(luma_rows_[slot], plan.luma[slot])) {
        luma_[slot] = columns_.luma(luma_words_[slot]);
        luma_rows_[slot] = plan.luma[slot];
      }
      if (!has(chroma_rows_[slot], plan.chroma[slot])) {
        chroma_[slot] = columns_.chroma(chroma_words_[slot]);
        chroma_rows_[slot] = plan.chroma[slot];
      }
    }
  }

  // Gives luma of 0…1 and centred chroma.
  MR_BOTH void mean(const RowPlan& plan, Sample (&pixels)[2]) const {
    const auto luma = [&](float LumaPair::*number) {
      return fmaf(luma_[1].*number, plan.luma_weight[1], fmaf(luma_[0].*number, plan.luma_weight[0], black_));
    };
    const auto chroma = [&](float ChromaPair::*number) {
      return chroma_[0].*number * plan.chroma_weight[0] + chroma_[1].*number * plan.chroma_weight[1];
    };
    pixels[0] = {luma(&LumaPair::left), chroma(&ChromaPair::left_u), chroma(&ChromaPair::left_v)};
    pixels[1] = {luma(&LumaPair::right), chroma(&ChromaPair::right_u), chroma(&ChromaPair::right_v)};
  }

 private:
  static constexpr uint32_t kNoRow = UINT32_MAX;

  MR_BOTH static bool has(uint32_t row, uint32_t wanted) { return kKeep && row == wanted; }

  // A second word that no footprint reaches has no weight, so it keeps its old bytes.
  MR_BOTH void read(uint32_t plane, uint32_t row, WindowWords& words) const {
    const uint8_t* at = row_at(planes_[plane], row, strides_[plane]);
#ifdef __CUDA_ARCH__
    words.first = *reinterpret_cast<const uint32_t*>(at);
    if (columns_.window().two_words) words.last = *reinterpret_cast<const uint32_t*>(at + 4);
#else
    memcpy(&words.first, at, 4);
    if (columns_.window().two_words) memcpy(&words.last, at + 4, 4);
#endif
  }

  Columns columns_;
  const uint8_t* planes_[2]; // at the window's first word
  uint32_t strides_[2];
  float black_;                                                                  // the value of a stored luma of 0
  uint32_t luma_rows_[2] = {kNoRow, kNoRow}, chroma_rows_[2] = {kNoRow, kNoRow}; // the rows in the slots
  WindowWords luma_words_[2] = {}, chroma_words_[2] = {};
  LumaPair luma_[2];
  ChromaPair chroma_[2];
};

} // namespace millrace::handlers::gpu
