// A tile of eight by two pixels in a thread's registers, which a kernel reads from a picture of any format or writes to
// one.
//
// This is the smallest size that has whole samples of halved chroma and, in every format, rows of at least four aligned
// bytes. A tile that reaches beyond the edge repeats the picture's last column and row, so a chroma sample there is
// that of the existing pixels.
#pragma once

#include <millrace/payload.h>

#include "handlers/gpu/color_math.h"
#include "handlers/gpu/samples.h"

namespace millrace::handlers::gpu {

inline constexpr uint32_t kTileWidth = 8, kTileHeight = 2, kTilePairs = kTileWidth / 2;

// Red in the lowest byte, alpha in the highest.
struct RgbaTile {
  uint32_t pixel[kTileHeight][kTileWidth];
};
// Numbers of 8 or 10 bits each.
struct YcbcrTile {
  uint32_t y[kTileHeight][kTileWidth], u[kTilePairs], v[kTilePairs];
};

MR_BOTH constexpr uint32_t rgba(uint32_t r, uint32_t g, uint32_t b, uint32_t a = 255) {
  return r | g << 8 | b << 16 | a << 24;
}
MR_BOTH constexpr uint32_t rgba(const Rgb& color) { return rgba(color.r, color.g, color.b); }
MR_BOTH constexpr int32_t red_of(uint32_t pixel) { return static_cast<int32_t>(pixel & 255); }
MR_BOTH constexpr int32_t green_of(uint32_t pixel) { return static_cast<int32_t>(pixel >> 8 & 255); }
MR_BOTH constexpr int32_t blue_of(uint32_t pixel) { return static_cast<int32_t>(pixel >> 16 & 255); }
MR_BOTH constexpr uint32_t swap_red_blue(uint32_t pixel) {
  return (pixel & 0xff00ff00) | (pixel >> 16 & 255) | (pixel & 255) << 16;
}

MR_BOTH inline Pixel format_of(const DevicePicture& picture) { return static_cast<Pixel>(picture.image.format); }
MR_BOTH constexpr bool is_ycbcr(Pixel pixel) {
  return pixel == Pixel::nv12 || pixel == Pixel::i420 || pixel == Pixel::p010;
}
MR_BOTH constexpr bool blue_first(Pixel pixel) { return pixel == Pixel::bgr8 || pixel == Pixel::bgra8; }

// The column that stands for column x in a row of `size` samples.
MR_BOTH inline uint32_t last_repeated(uint32_t x, uint32_t size) { return smaller(x, size - 1); }

// ---- reading --------------------------------------------------------------------------------------------------

// Loads eight samples of kBytes bytes from column x on. Rows of 32 bytes are loaded as two halves, rows of 24 as three
// thirds.
template <uint32_t kBytes>
MR_BOTH void load_row(const uint8_t* row, uint32_t x, uint32_t size, uint32_t (&samples)[kTileWidth]) {
  constexpr uint32_t kLength = kTileWidth * kBytes;
  const uint8_t* at = row + size_t{x} * kBytes;
  if (x + kTileWidth > size || !fits_words<kLength>(at)) {
    MR_UNROLL
    for (uint32_t i = 0; i < kTileWidth; ++i) samples[i] = load_sample<kBytes>(row, last_repeated(x + i, size));
    return;
  }
  const Words<kLength> words = load_words<kLength>(at);
  for (uint32_t i = 0; i < kTileWidth; ++i) {
    if constexpr (kBytes == 1) samples[i] = words.byte(i);
    if constexpr (kBytes == 2) samples[i] = words.half(i);
    if constexpr (kBytes == 3)
      samples[i] = words.byte(3 * i) | words.byte(3 * i + 1) << 8 | words.byte(3 * i + 2) << 16;
    if constexpr (kBytes == 4) samples[i] = words.word[i];
  }
}

MR_BOTH inline void load_pixels(const DevicePicture& picture, uint32_t x, uint32_t y, uint32_t (&pixels)[kTileWidth]) {
  const Pixel format = format_of(picture);
  const uint8_t* row = row_of(picture, 0, y);
  const uint32_t width = picture.image.width;
  if (format == Pixel::gray8) {
    load_row<1>(row, x, width, pixels);
    for (uint32_t& pixel : pixels) pixel = pixel * 0x010101 | 0xff000000;
    return;
  }
  if (format == Pixel::rgb8 || format == Pixel::bgr8) {
    load_row<3>(row, x, width, pixels);
    for (uint32_t& pixel : pixels) pixel |= 0xff000000;
  } else {
    load_row<4>(row, x, width, pixels);
  }
  if (blue_first(format))
    for (uint32_t& pixel : pixels) pixel = swap_red_blue(pixel);
}

// For the interleaved formats of 8 bits.
MR_BOTH inline void load_tile(const DevicePicture& picture, uint32_t x, uint32_t y, RgbaTile& tile) {
  load_pixels(picture, x, y, tile.pixel[0]);
  load_pixels(picture, x, last_repeated(y + 1, picture.image.height), tile.pixel[1]);
}

MR_BOTH inline void load_luma(const DevicePicture& picture, uint32_t x, uint32_t y, uint32_t (&luma)[kTileWidth]) {
  const uint8_t* row = row_of(picture, 0, y);
  if (format_of(picture) == Pixel::p010) {
    load_row<2>(row, x, picture.image.width, luma);
    for (uint32_t& number : luma) number >>= 6;
  } else {
    load_row<1>(row, x, picture.image.width, luma);
  }
}

MR_BOTH inline void load_chroma(const DevicePicture& picture, uint32_t x, uint32_t y, uint32_t (&u)[kTilePairs],
                                uint32_t (&v)[kTilePairs]) {
  const Pixel format = format_of(picture);
  const uint32_t pairs = (picture.image.width + 1) / 2;
  const uint8_t* row = row_of(picture, 1, y);
  if (format == Pixel::i420) {
    const uint8_t* second = row_of(picture, 2, y);
    const bool whole = x + kTilePairs <= pairs && fits_words<4>(row + x) && fits_words<4>(second + x);
    if (whole) {
      const Words<4> us = load_words<4>(row + x), vs = load_words<4>(second + x);
      for (uint32_t i = 0; i < kTilePairs; ++i) u[i] = us.byte(i), v[i] = vs.byte(i);
    } else {
      MR_UNROLL
      for (uint32_t i = 0; i < kTilePairs; ++i) {
        u[i] = row[last_repeated(x + i, pairs)];
        v[i] = second[last_repeated(x + i, pairs)];
      }
    }
    return;
  }
  uint32_t both[kTileWidth];
  const uint32_t last = 2 * pairs;
  if (format == Pixel::p010) {
    load_row<2>(row, 2 * x, last, both);
    for (uint32_t& number : both) number >>= 6;
  } else {
    load_row<1>(row, 2 * x, last, both);
  }
  for (uint32_t i = 0; i < kTilePairs; ++i) u[i] = both[2 * i], v[i] = both[2 * i + 1];
}

// For nv12, i420 and p010. At odd edges the chroma numbers outside the picture are neither used nor harmful.
MR_BOTH inline void load_tile(const DevicePicture& picture, uint32_t x, uint32_t y, YcbcrTile& tile) {
  load_luma(picture, x, y, tile.y[0]);
  load_luma(picture, x, last_repeated(y + 1, picture.image.height), tile.y[1]);
  load_chroma(picture, x / 2, y / 2, tile.u, tile.v);
}

// ---- writing --------------------------------------------------------------------------------------------------

// Stores the first `count` of eight samples of kBytes bytes from column x on.
template <uint32_t kBytes>
MR_BOTH void store_row(uint8_t* row, uint32_t x, uint32_t count, const uint32_t (&samples)[kTileWidth]) {
  constexpr uint32_t kLength = kTileWidth * kBytes;
  const uint32_t left[4] = {samples[0], samples[1], samples[2], samples[3]};
  const uint32_t right[4] = {samples[4], samples[5], samples[6], samples[7]};
  uint8_t* at = row + size_t{x} * kBytes;
  if (count < kTileWidth || !fits_words<kLength>(at)) {
    store_samples<kBytes>(row, x, left, count);
    if (count > 4) store_samples<kBytes>(row, x + 4, right, count - 4);
    return;
  }
  const Words<kLength / 2> first = packed<kBytes>(left), second = packed<kBytes>(right);
  Words<kLength> words;
  for (uint32_t i = 0; i < kBytes; ++i) words.word[i] = first.word[i], words.word[kBytes + i] = second.word[i];
  store_words(at, words);
}

MR_BOTH inline void store_pixels(const DevicePicture& picture, uint32_t x, uint32_t y, uint32_t (&pixels)[kTileWidth]) {
  const Pixel format = format_of(picture);
  const uint32_t count = smaller(kTileWidth, picture.image.width - x);
  uint8_t* row = row_of(picture, 0, y);
  if (format == Pixel::gray8) {
    for (uint32_t& pixel : pixels) pixel = gray_of(red_of(pixel), green_of(pixel), blue_of(pixel));
    return store_row<1>(row, x, count, pixels);
  }
  if (blue_first(format))
    for (uint32_t& pixel : pixels) pixel = swap_red_blue(pixel);
  if (format == Pixel::rgba8 || format == Pixel::bgra8) return store_row<4>(row, x, count, pixels);
  for (uint32_t& pixel : pixels) pixel &= 0xffffff;
  store_row<3>(row, x, count, pixels);
}

// For the interleaved formats of 8 bits. Converts the tile's pixels to the picture's samples in place.
MR_BOTH inline void store_tile(const DevicePicture& picture, uint32_t x, uint32_t y, RgbaTile& tile) {
  store_pixels(picture, x, y, tile.pixel[0]);
  if (y + 1 < picture.image.height) store_pixels(picture, x, y + 1, tile.pixel[1]);
}

MR_BOTH inline void store_luma(const DevicePicture& picture, uint32_t x, uint32_t y, uint32_t (&luma)[kTileWidth]) {
  const uint32_t count = smaller(kTileWidth, picture.image.width - x);
  uint8_t* row = row_of(picture, 0, y);
  if (format_of(picture) != Pixel::p010) return store_row<1>(row, x, count, luma);
  for (uint32_t& number : luma) number <<= 6;
  store_row<2>(row, x, count, luma);
}

MR_BOTH inline void store_chroma(const DevicePicture& picture, uint32_t x, uint32_t y, const uint32_t (&u)[kTilePairs],
                                 const uint32_t (&v)[kTilePairs]) {
  const Pixel format = format_of(picture);
  const uint32_t count = smaller(kTilePairs, (picture.image.width + 1) / 2 - x);
  uint8_t* row = row_of(picture, 1, y);
  if (format == Pixel::i420) {
    store_samples<1>(row, x, u, count);
    return store_samples<1>(row_of(picture, 2, y), x, v, count);
  }
  const uint32_t up = format == Pixel::p010 ? 6 : 0;
  uint32_t both[kTileWidth];
  for (uint32_t i = 0; i < kTilePairs; ++i) both[2 * i] = u[i] << up, both[2 * i + 1] = v[i] << up;
  if (format == Pixel::p010) return store_row<2>(row, 2 * x, 2 * count, both);
  store_row<1>(row, 2 * x, 2 * count, both);
}

// For nv12, i420 and p010. Converts the tile's numbers to the picture's samples in place.
MR_BOTH inline void store_tile(const DevicePicture& picture, uint32_t x, uint32_t y, YcbcrTile& tile) {
  store_luma(picture, x, y, tile.y[0]);
  if (y + 1 < picture.image.height) store_luma(picture, x, y + 1, tile.y[1]);
  store_chroma(picture, x / 2, y / 2, tile.u, tile.v);
}

// ---- encoding -------------------------------------------------------------------------------------------------

MR_BOTH inline void encode(const ColorMatrix& matrix, const RgbaTile& tile, YcbcrTile& numbers) {
  MR_UNROLL
  for (uint32_t row = 0; row < kTileHeight; ++row) MR_UNROLL
  for (uint32_t i = 0; i < kTileWidth; ++i) {
    const uint32_t pixel = tile.pixel[row][i];
    numbers.y[row][i] = static_cast<uint32_t>(luma_of(matrix, red_of(pixel), green_of(pixel), blue_of(pixel)));
  }
  for (uint32_t i = 0; i < kTilePairs; ++i) {
    const uint32_t block[4] = {tile.pixel[0][2 * i], tile.pixel[0][2 * i + 1], tile.pixel[1][2 * i],
                               tile.pixel[1][2 * i + 1]};
    int32_t r = 0, g = 0, b = 0;
    for (const uint32_t pixel : block) r += red_of(pixel), g += green_of(pixel), b += blue_of(pixel);
    numbers.u[i] = static_cast<uint32_t>(cb_of(matrix, r, g, b));
    numbers.v[i] = static_cast<uint32_t>(cr_of(matrix, r, g, b));
  }
}

// Stores pixels in a picture of any format; `matrix` is that of its numbers if it is YCbCr.
MR_BOTH inline void store_encoded(const DevicePicture& picture, const ColorMatrix& matrix, uint32_t x, uint32_t y,
                                  RgbaTile& tile) {
  if (!is_ycbcr(format_of(picture))) return store_tile(picture, x, y, tile);
  YcbcrTile numbers;
  encode(matrix, tile, numbers);
  store_tile(picture, x, y, numbers);
}

} // namespace millrace::handlers::gpu
