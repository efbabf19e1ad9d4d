// image.resize on a GPU: four pixels of a target row at a time. Rules: resample_math.h.
#pragma once

#include "handlers/gpu/resample_math.h"
#include "handlers/gpu/samples.h"
#include "handlers/image/resample.h"

namespace millrace::handlers::gpu {

struct Resizing {
  DevicePicture source, target; // of one interleaved format of 8 bits
  ResizeAxis x, y;
};

inline Resizing resizing_of(const DevicePicture& source, const DevicePicture& target) {
  return {source, target, ResizeAxis(source.image.width, target.image.width),
          ResizeAxis(source.image.height, target.image.height)};
}

MR_BOTH constexpr uint8_t channel(uint32_t pixel, uint32_t c) { return static_cast<uint8_t>(pixel >> (8 * c)); }

template <uint32_t kChannels>
MR_BOTH uint32_t bilinear_pixel(const Resizing& resizing, const uint8_t* above, const uint8_t* below, uint16_t weight,
                                uint32_t x) {
  const BilinearTap tap = bilinear_tap(resizing.x, x);
  const uint32_t second = smaller(tap.first + 1, resizing.x.source - 1);
  const uint32_t a = load_sample<kChannels>(above, tap.first), b = load_sample<kChannels>(above, second);
  const uint32_t c = load_sample<kChannels>(below, tap.first), d = load_sample<kChannels>(below, second);
  uint32_t pixel = 0;
  for (uint32_t i = 0; i < kChannels; ++i) {
    const uint16_t left = mixed_sample(channel(a, i), channel(c, i), weight);
    const uint16_t right = mixed_sample(channel(b, i), channel(d, i), weight);
    pixel |= uint32_t{blended_sample(left, right, tap.weight)} << (8 * i);
  }
  return pixel;
}

// Columns first, as the CPU does it.
template <uint32_t kChannels>
MR_BOTH uint32_t area_pixel(const Resizing& resizing, const AreaTaps& rows, uint32_t x) {
  const AreaTaps columns = area_taps(resizing.x, x);
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
    for (uint32_t i = 0; i < kChannels; ++i) sums[i] += down[i] * columns.weight(column);
  }
  uint32_t pixel = 0;
  // Sums are never negative and at most a rounding error above 255.
  for (uint32_t i = 0; i < kChannels; ++i) pixel |= smaller(static_cast<uint32_t>(sums[i] + 0.5f), 255) << (8 * i);
  return pixel;
}

// The four pixels from (x, y) on.
template <uint32_t kChannels, ResizeMethod kMethod>
MR_BOTH void resize_four(const Resizing& resizing, uint32_t x, uint32_t y) {
  const uint32_t count = smaller(4, resizing.x.target - x);
  const auto column = [&](uint32_t i) { return x + smaller(i, count - 1); };
  uint32_t pixels[4];
  if constexpr (kMethod == ResizeMethod::nearest) {
    const uint8_t* row = row_of(resizing.source, 0, nearest_source(resizing.y, y));
    for (uint32_t i = 0; i < 4; ++i) pixels[i] = load_sample<kChannels>(row, nearest_source(resizing.x, column(i)));
  } else if constexpr (kMethod == ResizeMethod::bilinear) {
    const BilinearTap tap = bilinear_tap(resizing.y, y);
    const uint8_t* above = row_of(resizing.source, 0, tap.first);
    const uint8_t* below = row_of(resizing.source, 0, smaller(tap.first + 1, resizing.y.source - 1));
    for (uint32_t i = 0; i < 4; ++i)
      pixels[i] = bilinear_pixel<kChannels>(resizing, above, below, tap.weight, column(i));
  } else {
    const AreaTaps rows = area_taps(resizing.y, y);
    for (uint32_t i = 0; i < 4; ++i) pixels[i] = area_pixel<kChannels>(resizing, rows, column(i));
  }
  store_samples<kChannels>(row_of(resizing.target, 0, y), x, pixels, count);
}

} // namespace millrace::handlers::gpu
