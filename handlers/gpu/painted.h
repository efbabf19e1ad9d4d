// Computes the pixels of test.pattern from place and index, the same on every machine and device.
//
// Rule. The arithmetic uses whole numbers only, so the CPU and kernels paint the same bytes.
#pragma once

#include "handlers/gpu/divider.h"
#include "handlers/gpu/pixel_tile.h"
#include "handlers/test/painting.h"

namespace millrace::handlers::gpu {

// Everything that painting a picture of this size needs, except its index.
struct Painting {
  Painting(Pattern chosen, const DevicePicture& picture)
      : target(picture),
        pattern(chosen),
        matrix(color_matrix(picture.image)),
        by_width(larger(picture.image.width, 2)),
        by_width_less_one(larger(picture.image.width, 3) - 1),
        by_height_less_one(larger(picture.image.height, 3) - 1) {}

  DevicePicture target;
  Pattern pattern;
  ColorMatrix matrix;
  Divider by_width, by_width_less_one, by_height_less_one;
};

// The values that change from picture to picture.
struct Scene {
  uint32_t number; // the number that is burnt in
  uint32_t blue;   // the gradient's blue
  Disc disc;
};
MR_BOTH inline Scene scene_of(const Painting& painting, uint64_t index) {
  return {static_cast<uint32_t>(index), gradient_blue(index),
          disc_at(index, painting.target.image.width, painting.target.image.height)};
}

// Runs from 0 to 255 along `size` places. The divider is that of size − 1, or of 2 if that is less.
MR_BOTH inline uint32_t ramp(uint32_t i, uint32_t size, const Divider& by_size_less_one) {
  if (size == 2) return i * 255;
  return size < 2 ? 0 : static_cast<uint32_t>(by_size_less_one.quotient(uint64_t{i} * 255));
}

// Red is in the lowest byte; alpha is 255.
MR_BOTH inline uint32_t pattern_color(const Painting& painting, const Scene& scene, uint32_t x, uint32_t y) {
  const uint32_t width = painting.target.image.width, height = painting.target.image.height;
  if (painting.pattern == Pattern::gradient)
    return rgba(ramp(x, width, painting.by_width_less_one), ramp(y, height, painting.by_height_less_one), scene.blue);
  if (painting.pattern == Pattern::disc) {
    constexpr uint32_t kInside = rgba(kDiscColor), kOutside = rgba(kBackground);
    const auto dx = static_cast<int32_t>(x - scene.disc.centre_x), dy = static_cast<int32_t>(y - scene.disc.centre_y);
    const auto radius = static_cast<int32_t>(scene.disc.radius);
    return dx * dx + dy * dy <= radius * radius ? kInside : kOutside;
  }
  return rgba(bar_color(width < 2 ? 0 : static_cast<uint32_t>(painting.by_width.quotient(uint64_t{x} * kBarCount))));
}

// The block of the burnt number that contains column x. The picture must be wide enough to carry a number.
MR_BOTH inline uint32_t block_at(const Painting& painting, uint32_t x) {
  // The last block that begins at or before x: floor(block · width / blocks) <= x.
  return static_cast<uint32_t>(painting.by_width.quotient((uint64_t{x} + 1) * kNumberBlocks - 1));
}

MR_BOTH inline void paint_tile(const Painting& painting, const Scene& scene, uint32_t x, uint32_t y) {
  const uint32_t width = painting.target.image.width, height = painting.target.image.height;
  const uint32_t strip = width < kNumberBlocks ? 0 : burnt_number_rows(height);
  RgbaTile tile;
  MR_UNROLL
  for (uint32_t row = 0; row < kTileHeight; ++row) MR_UNROLL
  for (uint32_t i = 0; i < kTileWidth; ++i) {
    const uint32_t column = last_repeated(x + i, width), line = last_repeated(y + row, height);
    if (line >= strip)
      tile.pixel[row][i] = pattern_color(painting, scene, column, line);
    else
      tile.pixel[row][i] = block_of(scene.number, block_at(painting, column)) ? 0xffffffff : 0xff000000;
  }
  store_encoded(painting.target, painting.matrix, x, y, tile);
}

} // namespace millrace::handlers::gpu
