// image.convert on a GPU: a tile of the source becomes a tile of the target.
//
// Rule. Uses the same whole numbers as convert_pixels() of handlers/image/color.h, which states the rules, so the bytes
// are equal.
#pragma once

#include "handlers/gpu/pixel_tile.h"

namespace millrace::handlers::gpu {

// The way of a conversion: through RGB; between YCbCr layouts whose numbers mean the same; or from luma alone to gray.
enum class ConversionWay : uint32_t { rgb, numbers, luma };

struct Conversion {
  DevicePicture source, target;
  ConversionWay way;
  ColorMatrix from, to; // the matrices of source and target, if they are YCbCr
  Decoding decoding;    // for a source of 8 bits
  Rescaling rescaling;  // from the source's depth to the target's
};

// True if the numbers of both mean the same apart from their depth: both are YCbCr with equal matrix and range, or
// neither is YCbCr.
inline bool same_numbers(const mr_image& a, const mr_image& b) {
  const auto matrix = [](uint32_t color) { return color < MR_COLOR_BT601 ? uint32_t{MR_COLOR_BT601} : color; };
  const bool ycbcr = is_ycbcr(static_cast<Pixel>(a.format));
  if (ycbcr != is_ycbcr(static_cast<Pixel>(b.format))) return false;
  return !ycbcr || (matrix(a.color) == matrix(b.color) && a.range == b.range);
}

inline Conversion conversion_of(const DevicePicture& source, const DevicePicture& target) {
  Conversion conversion{source, target, ConversionWay::rgb, color_matrix(source.image), color_matrix(target.image),
                        {},     {}};
  conversion.decoding = Decoding(conversion.from);
  conversion.rescaling = rescaling(conversion.from, conversion.to, source.image.range);
  const bool ycbcr = is_ycbcr(format_of(source));
  if (ycbcr && same_numbers(source.image, target.image)) conversion.way = ConversionWay::numbers;
  if (ycbcr && format_of(target) == Pixel::gray8) conversion.way = ConversionWay::luma;
  return conversion;
}

MR_BOTH inline void rescale(const Rescaling& rescaling, YcbcrTile& tile) {
  MR_UNROLL
  for (auto& row : tile.y) MR_UNROLL
  for (uint32_t& y : row) y = static_cast<uint32_t>(rescaled_luma(rescaling, static_cast<int32_t>(y)));
  for (uint32_t i = 0; i < kTilePairs; ++i) {
    tile.u[i] = static_cast<uint32_t>(rescaled_chroma(rescaling, static_cast<int32_t>(tile.u[i])));
    tile.v[i] = static_cast<uint32_t>(rescaled_chroma(rescaling, static_cast<int32_t>(tile.v[i])));
  }
}

MR_BOTH inline void decode(const Conversion& conversion, const YcbcrTile& numbers, RgbaTile& tile) {
  const bool deep = format_of(conversion.source) == Pixel::p010;
  MR_UNROLL
  for (uint32_t row = 0; row < kTileHeight; ++row) MR_UNROLL
  for (uint32_t i = 0; i < kTileWidth; ++i) {
    const auto y = static_cast<int32_t>(numbers.y[row][i]);
    const auto u = static_cast<int32_t>(numbers.u[i / 2]), v = static_cast<int32_t>(numbers.v[i / 2]);
    tile.pixel[row][i] = rgba(deep ? decoded_deep(conversion.from, y, u, v) : decoded(conversion.decoding, y, u, v));
  }
}

// Converts the tile that begins at (x, y) of the target.
MR_BOTH inline void convert_tile(const Conversion& conversion, uint32_t x, uint32_t y) {
  RgbaTile tile;
  if (!is_ycbcr(format_of(conversion.source))) {
    load_tile(conversion.source, x, y, tile);
    return store_encoded(conversion.target, conversion.to, x, y, tile);
  }
  YcbcrTile numbers;
  if (conversion.way == ConversionWay::luma) {
    load_luma(conversion.source, x, y, numbers.y[0]);
    load_luma(conversion.source, x, last_repeated(y + 1, conversion.source.image.height), numbers.y[1]);
    MR_UNROLL
    for (uint32_t row = 0; row < kTileHeight; ++row) MR_UNROLL
    for (uint32_t i = 0; i < kTileWidth; ++i) {
      const uint32_t gray = gray_of_luma(conversion.from, static_cast<int32_t>(numbers.y[row][i]));
      tile.pixel[row][i] = rgba(gray, gray, gray); // gray_of() of a gray pixel is the pixel's own value
    }
    return store_tile(conversion.target, x, y, tile);
  }
  load_tile(conversion.source, x, y, numbers);
  if (conversion.way == ConversionWay::numbers) {
    rescale(conversion.rescaling, numbers);
    return store_tile(conversion.target, x, y, numbers);
  }
  decode(conversion, numbers, tile);
  store_encoded(conversion.target, conversion.to, x, y, tile);
}

} // namespace millrace::handlers::gpu
