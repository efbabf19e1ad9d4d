// Paints the pictures of test.pattern: whole-number functions of place and index, the same on every machine.
#pragma once

#include <millrace/payload.h>

#include <algorithm>
#include <cstdint>

#include "handlers/gpu/both.h"
#include "handlers/gpu/color_math.h"
#include "handlers/test/burnt_number.h"

namespace millrace::handlers {

enum class Pattern { bars, gradient, disc };

inline constexpr gpu::Rgb kBackground = {24, 32, 48};
inline constexpr gpu::Rgb kDiscColor = {255, 160, 32};

// The eight bars of a colour test at 75 %, bright to dark.
inline constexpr uint32_t kBarCount = 8;
MR_BOTH constexpr gpu::Rgb bar_color(uint32_t bar) {
  const auto level = [bar](uint32_t dark) { return static_cast<uint8_t>(bar & dark ? 0 : 191); };
  return {level(2), level(4), level(1)};
}

// 0, 1, … limit, limit − 1, … 0, 1, …
MR_BOTH constexpr uint32_t bounce(uint64_t step, uint32_t limit) {
  if (limit == 0) return 0;
  const uint64_t phase = step % (2 * uint64_t{limit});
  return static_cast<uint32_t>(std::min(phase, 2 * uint64_t{limit} - phase));
}

// The blue of gradient `index`.
MR_BOTH constexpr uint8_t gradient_blue(uint64_t index) { return static_cast<uint8_t>(bounce(index * 4, 255)); }

// The place of the disc in picture `index`, in pixels. It bounces off the edges and stays below the strip of the burnt
// number.
struct Disc {
  uint32_t centre_x, centre_y, radius;
};
MR_BOTH constexpr Disc disc_at(uint64_t index, uint32_t width, uint32_t height) {
  const uint32_t top = burnt_number_rows(height);
  const uint32_t room = height - std::min(top, height);
  const uint32_t radius = std::min(width, room) / 8;
  // Two speeds without a common divisor, so that the path fills the picture; slow enough to follow by eye at 30 a
  // second.
  const uint32_t x = radius + bounce(index * 5, width - std::min(width, 2 * radius + 1));
  const uint32_t y = top + radius + bounce(index * 3, room - std::min(room, 2 * radius + 1));
  return {std::min(x, width - 1), std::min(y, height - 1), radius};
}

// Paints an rgb8 picture, without its number.
void paint_pattern(Pattern pattern, uint64_t index, const ImageSpan& picture);

} // namespace millrace::handlers
