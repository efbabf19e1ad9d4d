// Computes the points of test.points in whole numbers, so that every body gives the same bits.
#pragma once

#include <millrace/payload/marks.h>

#include <cstdint>

#include "handlers/gpu/both.h"
#include "handlers/test/mixing.h"

namespace millrace::handlers {

struct MovingPoints {
  uint32_t width, height; // pixels
  uint64_t seed;
};

// A place on a line of `length` pixels, in 1/256 pixels: it starts anywhere, moves by up to 8 pixels a tick, and turns
// at both ends.
MR_BOTH inline uint32_t place_at(uint64_t bits, uint64_t index, uint32_t length) {
  const uint64_t round = uint64_t{length} * 512, speed = 128 + bits % 1920;
  const uint64_t way = (bits / 1920 % round + speed * (index % round)) % round;
  return static_cast<uint32_t>(way < round / 2 ? way : round - way);
}

MR_BOTH inline Point point_at(const MovingPoints& points, uint64_t index, uint64_t number) {
  const uint64_t across = joined(points.seed, 2 * number), down = joined(points.seed, 2 * number + 1);
  Point point;
  point.x = static_cast<float>(place_at(across, index, points.width)) / 256;
  point.y = static_cast<float>(place_at(down, index, points.height)) / 256;
  point.radius = static_cast<float>(4 + across % 13);
  point.score = 1;
  point.age = static_cast<uint32_t>(index < UINT32_MAX ? index : UINT32_MAX);
  point.id = static_cast<int64_t>(number);
  return point;
}

} // namespace millrace::handlers
