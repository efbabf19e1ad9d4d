// Crops pictures.
#pragma once

#include <millrace/payload.h>

#include <cstdint>

namespace millrace::handlers {

struct CropArea {
  uint32_t x = 0, y = 0, width = 0, height = 0;
};

// Checks the rectangle `asked` in a picture of this size and format, and resolves a width or height of 0, which reaches
// to the edge. Throws std::invalid_argument, with the possible values, if the rectangle is not inside or begins between
// two chroma samples.
CropArea crop_area(const CropArea& asked, uint32_t picture_width, uint32_t picture_height, Pixel pixel);

// Copies the area. The target has its size and the source's format; `x` and `y` are even if chroma is halved.
void crop_picture(const ImageView& source, uint32_t x, uint32_t y, const ImageSpan& target);

} // namespace millrace::handlers
