// The pictures of test.pattern: whole-number functions of place and index, the same on every machine.
#pragma once

#include <millrace/payload.h>

#include <cstdint>

namespace millrace::handlers {

enum class Pattern { bars, gradient, disc };

// Where the disc of picture `index` is; pixels. It bounces off the edges and stays below the strip of the burnt number.
struct Disc {
  uint32_t centre_x, centre_y, radius;
};
Disc disc_at(uint64_t index, uint32_t width, uint32_t height);

// Paints an rgb8 picture, without its number.
void paint_pattern(Pattern pattern, uint64_t index, const ImageSpan& picture);

} // namespace millrace::handlers
