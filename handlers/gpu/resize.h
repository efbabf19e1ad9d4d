// image.resize on a GPU: a thread makes some pixels of the target. resample_math.h has the rules.
#pragma once

#include "handlers/gpu/plane_samples.h"
#include "handlers/gpu/resample_math.h"
#include "handlers/gpu/samples.h"
#include "handlers/image/planes.h"
#include "handlers/image/resample.h"

namespace millrace::handlers::gpu {

// The resize of one plane of a picture.
struct Resizing {
  DevicePicture source, target; // both of the same format
  uint32_t plane;
  ResizeAxis x, y; // in samples of the plane

  MR_BOTH const uint8_t* source_row(uint32_t row) const { return row_of(source, plane, row); }
};

inline Resizing resizing_of(const DevicePicture& source, const DevicePicture& target, uint32_t plane = 0) {
  const auto pixel = static_cast<Pixel>(source.image.format);
  const auto axis = [&](uint32_t from, uint32_t to) {
    return ResizeAxis(plane_extent(pixel, from, plane), plane_extent(pixel, to, plane), from, to);
  };
  return {source, target, plane, axis(source.image.width, target.image.width),
          axis(source.image.height, target.image.height)};
}

template <class Of>
MR_BOTH uint32_t blended(uint16_t left, uint16_t right, uint16_t weight) {
  if constexpr (Of::kBits == 16) return blended_sample16(left, right, weight);
  return blended_sample(left, right, weight);
}
// Sums are never negative and at most a rounding error above 255.
template <class Of>
MR_BOTH uint32_t rounded(float sum) {
  if constexpr (Of::kBits == 16) return rounded_sample16(sum);
  return smaller(static_cast<uint32_t>(sum + 0.5f), 255);
}

// The taps of a target column or row. A thread computes those of a column once, and uses them for all its rows.
template <ResizeMethod kMethod>
MR_BOTH auto taps_of(const ResizeAxis& axis, uint32_t i) {
  if constexpr (kMethod == ResizeMethod::nearest) return nearest_source(axis, i);
  if constexpr (kMethod == ResizeMethod::bilinear) return bilinear_tap(axis, i);
  if constexpr (kMethod == ResizeMethod::area) return area_taps(axis, i);
}

template <class Of>
MR_BOTH uint32_t resized_pixel(const Resizing& resizing, uint32_t column, uint32_t row) {
  return load_sample<Of::kBytes>(resizing.source_row(row), column);
}

template <class Of>
MR_BOTH uint32_t resized_pixel(const Resizing& resizing, const BilinearTap& column, const BilinearTap& row) {
  const uint32_t second = smaller(column.first + 1, resizing.x.source - 1);
  const uint8_t* above = resizing.source_row(row.first);
  const uint8_t* below = resizing.source_row(smaller(row.first + 1, resizing.y.source - 1));
  const uint32_t a = load_sample<Of::kBytes>(above, column.first), b = load_sample<Of::kBytes>(above, second);
  const uint32_t c = load_sample<Of::kBytes>(below, column.first), d = load_sample<Of::kBytes>(below, second);
  uint32_t pixel = 0;
  for (uint32_t i = 0; i < Of::kChannels; ++i) {
    const uint16_t left = mixed_sample(Of::channel(a, i), Of::channel(c, i), row.weight);
    const uint16_t right = mixed_sample(Of::channel(b, i), Of::channel(d, i), row.weight);
    pixel |= Of::with(blended<Of>(left, right, column.weight), i);
  }
  return pixel;
}

// Sums down the columns first, as the CPU does.
template <class Of>
MR_BOTH uint32_t resized_pixel(const Resizing& resizing, const AreaTaps& columns, const AreaTaps& rows) {
  const size_t stride = resizing.source.image.planes[resizing.plane].stride;
  float sums[Of::kChannels] = {};
  for (uint32_t column = columns.first; column <= columns.last; ++column) {
    float down[Of::kChannels] = {};
    const uint8_t* row = resizing.source_row(rows.first);
    for (uint32_t y = rows.first; y <= rows.last; ++y, row += stride) {
      const uint32_t pixel = load_sample<Of::kBytes>(row, column);
      const float weight = rows.weight(y);
      for (uint32_t i = 0; i < Of::kChannels; ++i) down[i] += static_cast<float>(Of::channel(pixel, i)) * weight;
    }
    const float weight = columns.weight(column);
    for (uint32_t i = 0; i < Of::kChannels; ++i) sums[i] += down[i] * weight;
  }
  uint32_t pixel = 0;
  for (uint32_t i = 0; i < Of::kChannels; ++i) pixel |= Of::with(rounded<Of>(sums[i]), i);
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
  return uint64_t{resizing.x.source} * resizing.y.source > 8 * uint64_t{resizing.x.target} * resizing.y.target;
}

// Makes the tile that begins at (x, y).
template <class Of, ResizeMethod kMethod, bool kMany>
MR_BOTH void resize_tile_at(const Resizing& resizing, uint32_t x, uint32_t y) {
  constexpr ResizeTile kTile = resize_tile(kMethod, kMany);
  const uint32_t count = smaller(kTile.columns, resizing.x.target - x);
  decltype(taps_of<kMethod>(resizing.x, x)) columns[kTile.columns];
  for (uint32_t i = 0; i < kTile.columns; ++i) columns[i] = taps_of<kMethod>(resizing.x, x + smaller(i, count - 1));
  for (uint32_t line = y; line < smaller(y + kTile.rows, resizing.y.target); ++line) {
    const auto row = taps_of<kMethod>(resizing.y, line);
    uint32_t pixels[4] = {};
    for (uint32_t i = 0; i < kTile.columns; ++i) pixels[i] = resized_pixel<Of>(resizing, columns[i], row);
    store_samples<Of::kBytes>(row_of(resizing.target, resizing.plane, line), x, pixels, count);
  }
}

} // namespace millrace::handlers::gpu
