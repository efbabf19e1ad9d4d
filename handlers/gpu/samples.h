// Reads and writes the samples of a picture in kernels: in words, because a thread's load takes as long for one byte as
// for sixteen.
//
// Rules. Any address can be read: an unaligned value is cut out of the aligned words that hold it, which are all in the
// picture's memory, since its rows are padded. Writing changes no byte but those of the samples; padding is not
// changed. So a row that begins at a multiple of 16 is fast, and any other row is still correct.
#pragma once

#include <cstddef>
#include <cstdint>

#include "handlers/gpu/both.h"
#include "handlers/gpu/library.h"

namespace millrace::handlers::gpu {

MR_BOTH inline uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
MR_BOTH inline uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
// A float would be cut to a whole number here; those of draw (four_floats.h) are for floats.
void smaller(float, float) = delete;
void larger(float, float) = delete;

MR_BOTH inline uint8_t* row_of(const DevicePicture& picture, uint32_t plane, uint32_t y) {
  const mr_plane& place = picture.image.planes[plane];
  return picture.data + place.offset + size_t{y} * place.stride;
}

// Bytes that one to three loads or stores move.
template <uint32_t kBytes>
struct alignas(kBytes % 16 == 0  ? 16
               : kBytes % 8 == 0 ? 8
                                 : 4) Words {
  uint32_t word[kBytes / 4];
  MR_BOTH uint32_t byte(uint32_t i) const { return word[i / 4] >> (i % 4 * 8) & 255; }
  MR_BOTH uint32_t half(uint32_t i) const { return word[i / 2] >> (i % 2 * 16) & 65535; }
};

template <uint32_t kBytes>
MR_BOTH bool fits_words(const uint8_t* at) {
  return reinterpret_cast<uintptr_t>(at) % alignof(Words<kBytes>) == 0;
}
template <uint32_t kBytes>
MR_BOTH Words<kBytes> load_words(const uint8_t* at) {
  return *reinterpret_cast<const Words<kBytes>*>(at);
}
template <uint32_t kBytes>
MR_BOTH void store_words(uint8_t* at, const Words<kBytes>& words) {
  *reinterpret_cast<Words<kBytes>*>(at) = words;
}

// Loads one to four bytes from any address, the first one lowest; the bits above them are undefined.
template <uint32_t kBytes>
MR_BOTH uint32_t load_cut(const uint8_t* at) {
  const uint32_t shift = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at) % 4);
  const auto* words = reinterpret_cast<const uint32_t*>(at - shift);
  const uint32_t low = words[0], high = shift + kBytes > 4 ? words[1] : 0;
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (shift * 8));
}

// Loads a sample of kBytes bytes, the first one lowest; the bits above are 0.
template <uint32_t kBytes>
MR_BOTH uint32_t load_sample(const uint8_t* row, uint32_t x) {
  static_assert(kBytes >= 1 && kBytes <= 4);
  if constexpr (kBytes == 1) return row[x];
  const uint32_t cut = load_cut<kBytes>(row + size_t{x} * kBytes);
  return kBytes == 4 ? cut : cut & ((1u << (kBytes % 4 * 8)) - 1);
}

// Packs four samples without gaps.
template <uint32_t kBytes>
MR_BOTH Words<4 * kBytes> packed(const uint32_t (&samples)[4]) {
  const uint32_t a = samples[0], b = samples[1], c = samples[2], d = samples[3];
  if constexpr (kBytes == 1) return {{a | b << 8 | c << 16 | d << 24}};
  if constexpr (kBytes == 2) return {{a | b << 16, c | d << 16}};
  if constexpr (kBytes == 3) return {{a | b << 24, b >> 8 | c << 16, c >> 16 | d << 8}};
  if constexpr (kBytes == 4) return {{a, b, c, d}};
}

// Stores the first `count` of four samples from column x on.
template <uint32_t kBytes>
MR_BOTH void store_samples(uint8_t* row, uint32_t x, const uint32_t (&samples)[4], uint32_t count) {
  uint8_t* at = row + size_t{x} * kBytes;
  if (count >= 4 && fits_words<4 * kBytes>(at)) return store_words(at, packed<kBytes>(samples));
  MR_UNROLL
  for (uint32_t i = 0; i < 4; ++i) MR_UNROLL
  for (uint32_t b = 0; b < kBytes && i < count; ++b) at[i * kBytes + b] = static_cast<uint8_t>(samples[i] >> (b * 8));
}

} // namespace millrace::handlers::gpu
