// Which pixels a shape covers, and how much of each: drawn once, then only blended into pictures.
//
// A point x,y is the middle of pixel x,y, so a line of thickness 1 along a row of pixels covers that row and no other.
// Coverage is a straight ramp over the one pixel that an edge goes through: exact for upright edges, within 5 % of a
// pixel for slanted ones, a tenth for lines as thin as a pixel; at corners it errs by more, the sharper they are the
// more (0.4 of the one pixel at a tip of 40 degrees), and hardly in sum.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <vector>

#include "handlers/draw/raster.h"
#include "handlers/draw/shape_text.h"

namespace millrace::handlers {

class ShapeMask {
 public:
  // Of a shape in a picture of this size, which also says what percentages mean; `thickness` where the shape has none.
  ShapeMask(const Shape& shape, uint32_t width, uint32_t height, double thickness);

  // Clipped where the picture is smaller than that. Every pixel is blended once.
  void draw(const ImageSpan& picture, const Ink& ink) const;

 private:
  struct Run {
    uint32_t y, x, count;
    uint8_t coverage; // 1 … 255
  };
  std::vector<Run> runs_; // from top to bottom, in a row from left to right
};

} // namespace millrace::handlers
