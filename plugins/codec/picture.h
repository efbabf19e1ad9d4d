// A picture in host memory, as encoders take it: from a value of a pipeline, or from any other memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "millrace/payload.h"

namespace millrace::codec {

// It owns nothing. Planes follow Pixel: one for packed formats, Y and pairs of Cb and Cr for nv12, Y, Cb and Cr for
// i420. Chroma planes of an odd size are rounded up.
struct Picture {
  Pixel pixel = Pixel::none;
  uint32_t width = 0, height = 0;
  std::array<const uint8_t*, 3> planes{};
  std::array<size_t, 3> strides{}; // bytes from row to row
  uint32_t color = MR_COLOR_SRGB;  // MR_COLOR_*: the matrix of nv12 and i420; srgb means BT.601, as everywhere
  uint32_t range = MR_RANGE_FULL;  // MR_RANGE_*, of nv12 and i420
  const uint8_t* row(uint32_t y, size_t plane = 0) const { return planes[plane] + y * strides[plane]; }
};

Picture picture_of(const ImageView& image);

// Throws std::invalid_argument in a sentence unless the format is one of gray8, rgb8, bgr8, rgba8, bgra8, nv12 and i420
// and each side has 1 to `side_max` pixels. `encoder` is its name in that sentence.
void require_encodable(const Picture& picture, std::string_view encoder, uint32_t side_max);

} // namespace millrace::codec
