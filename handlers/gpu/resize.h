// image.resize on a GPU: a thread makes some pixels of the target. resample_math.h has the rules.
#pragma once

#include "handlers/gpu/resample_math.h"
#include "handlers/gpu/samples.h"
#include "handlers/image/resample.h"

namespace millrace::handlers::gpu {

struct Resizing {
  DevicePicture source, target; // both of the same interleaved format of 8 bits
  ResizeAxis x, y;
};

inline Resizing resizing_of(const DevicePicture& source, const DevicePicture& target) {
  return {source, target, ResizeAxis(source.image.width, target.image.width),
          ResizeAxis(source.image.height, target.image.height)};
}

MR_BOTH constexpr uint8_t channel(uint32_t pixel, uint32_t c) { return static_cast<uint8_t>(pixel >> (8 * c)); }

// The taps of a target column or row. A thread computes those of a column once, and uses them for all its rows.
template <ResizeMethod kMethod>
MR_BOTH auto taps_of(const ResizeAxis& axis, uint32_t i) {
  if constexpr (kMethod == ResizeMethod::nearest) return nearest_source(axis, i);
  if constexpr (kMethod == ResizeMethod::bilinear) return bilinear_tap(axis, i);
  if constexpr (kMethod == ResizeMethod::area) return area_taps(axis, i);
}

template <uint32_t kChannels>
MR_BOTH uint32_t resized_pixel(const Resizing& resizing, uint32_t column, uint32_t row) {
  return load_sample<kChannels>(row_of(resizing.source, 0, row), column);
}

template <uint32_t kChannels>
MR_BOTH uint32_t resized_pixel(const Resizing& resizing, const BilinearTap& column, const BilinearTap& row) {
  const uint32_t second = smaller(column.first + 1, resizing.x.source - 1);
  const uint8_t* above = row_of(resizing.source, 0, row.first);
  const uint8_t* below = row_of(resizing.source, 0, smaller(row.first + 1, resizing.y.source - 1));
  const uint32_t a = load_sample<kChannels>(above, column.first), b = load_sample<kChannels>(above, second);
  const uint32_t c = load_sample<kChannels>(below, column.first), d = load_sample<kChannels>(below, second);
  uint32_t pixel = 0;
  for (uint32_t i = 0; i < kChannels; ++i) {
    const uint16_t left = mixed_sample(channel(a, i), channel(c, i), row.weight);
    const uint16_t right = mixed_sample(channel(b, i), channel(d, i), row.weight);
    pixel |= uint32_t{blended_sample(left, right, column.weight)} << (8 * i);
  }
  return pixel;
}

// Sums down the columns first, as the CPU does.
template <uint32_t kChannels>
MR_BOTH uint32_t resized_pixel(const Resizing& resizing, const AreaTaps& columns, const AreaTaps& rows) {
  const size_t stride = resizing.source.image.planes[0].stride;
  float sums[kChannels] = {};
  for (uint32_t column = columns.first; column <= columns.last; ++column) {
    float down[kChannels] = {};
    const uint8_t* row = row_of(resizing.source, 0, rows.first);
    for (uint32_t y = rows.first; y <= rows.last; ++y, row += stride) {
      const uint32_t pixel = load_sample<kChannels>(row, column);
      const float weight = rows.weight(y);
      for (uint32_t i = 0; i < kChannels; ++i) down[i] += static_cast<float>(channel(pixel, i)) * weight;
    }
    const float weight = columns.weight(column);
    for (uint32_t i = 0; i < kChannels; ++i) sums[i] += down[i] * weight;
  }
  uint32_t pixel = 0;
  // Sums are never negative and at most a rounding error above 255.
  for (uint32_t i = 0; i < kChannels; ++i) pixel |= smaller(static_cast<uint32_t>(sums[i] + 0.5f), 255) << (8 * i);
  return pixel;
}

// The target pixels of a thread: four in a row, so that it writes words, and several rows, so that the taps of the
// columns are reused. If a pixel is made of many source pixels, one pixel is enough work.
struct ResizeTile {
  uint32_t columns, rows;
};
MR_BOTH constexpr ResizeTile resize_tile(ResizeMethod method, bool many) {
  if (method == ResizeMethod::area) return many ? ResizeTile{1, 1} : ResizeTile{4, 2};
  return {4, 4};
}
inline bool takes_many(const Resizing& resizing) {
  const auto pixels = [](const mr_image& image) { return uint64_t{image.width} * image.height; };
  return pixels(resizing.source.image) > 8 * pixels(resizing.target.image);
}

// Makes the tile that begins at (x, y).
template <uint32_t kChannels, ResizeMethod kMethod, bool kMany>
MR_BOTH void resize_tile_at(const Resizing& resizing, uint32_t x, uint32_t y) {
  constexpr ResizeTile kTile = resize_tile(kMethod, kMany);
  const uint32_t count = smaller(kTile.columns, resizing.x.target - x);
  decltype(taps_of<kMethod>(resizing.x, x)) columns[kTile.columns];
  for (uint32_t i = 0; i < kTile.columns; ++i) columns[i] = taps_of<kMethod>(resizing.x, x + smaller(i, count - 1));
  for (uint32_t line = y; line < smaller(y + kTile.rows, resizing.y.target); ++line) {
    const auto row = taps_of<kMethod>(resizing.y, line);
    uint32_t pixels[4] = {};
    for (uint32_t i = 0; i < kTile.columns; ++i) pixels[i] = resized_pixel<kChannels>(resizing, columns[i], row);
    store_samples<kChannels>(row_of(resizing.target, 0, line), x, pixels, count);
  }
}

} // namespace millrace::handlers::gpu
