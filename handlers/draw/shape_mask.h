// The coverage of a shape's pixels: computed once, then only blended into pictures.
//
// A point x,y is the middle of pixel x,y, so a line of thickness 1 along a row of pixels covers that row and no other.
// Coverage is a linear ramp over the one pixel that an edge goes through. It is exact for upright edges, within 5 % of
// a pixel for slanted ones, and within a tenth for lines as thin as a pixel. The error is larger at corners and grows
// with their sharpness (0.4 of the one pixel at a tip of 40 degrees), but the sum over the pixels is hardly off.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <vector>

#include "handlers/draw/raster.h"
#include "handlers/draw/shape_text.h"

namespace millrace::handlers {

class ShapeMask {
 public:
  // Computes the mask of a shape in a picture of this size, which percentages refer to. `thickness` applies if the
  // shape has none of its own.
  ShapeMask(const Shape& shape, uint32_t width, uint32_t height, double thickness);

  // Clips if the picture is smaller than the size given to the constructor. Every pixel is blended once.
  void draw(const ImageSpan& picture, const Ink& ink) const;

 private:
  struct Run {
    uint32_t y, x, count;
    uint8_t coverage; // 1 … 255
  };
  std::vector<Run> runs_; // from top to bottom, and from left to right within a row
};

} // namespace millrace::handlers
