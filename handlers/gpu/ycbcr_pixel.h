// Reads single pixels of nv12, i420 and p010 as RGB, and writes the 2×2 pixels of a chroma sample.
//
// Rule. Uses the same whole numbers as convert_pixels() of handlers/image/color.h, so the bytes are equal.
#pragma once

#include "handlers/gpu/color_math.h"
#include "handlers/gpu/inked_pixel.h"

namespace millrace::handlers::gpu {

// How the numbers of a picture are read; kernels take it by value.
struct YcbcrForm {
  ColorMatrix matrix;
  Decoding decoding; // for 8 bits
};
inline YcbcrForm ycbcr_form(const mr_image& image) {
  const ColorMatrix matrix = color_matrix(image);
  return {matrix, Decoding(matrix)};
}

// A number of 8 or 10 bits.
MR_BOTH inline int32_t load_number(const DevicePicture& picture, uint32_t which, uint32_t x, uint32_t y) {
  if (picture.image.format == MR_PIXEL_P010) return *number_at<uint16_t>(picture, which, x, y) >> 6;
  return *number_at<uint8_t>(picture, which, x, y);
}
MR_BOTH inline void store_number(const DevicePicture& picture, uint32_t which, uint32_t x, uint32_t y, int32_t number) {
  if (picture.image.format == MR_PIXEL_P010)
    *number_at<uint16_t>(picture, which, x, y) = static_cast<uint16_t>(number << 6);
  else
    *number_at<uint8_t>(picture, which, x, y) = static_cast<uint8_t>(number);
}

MR_BOTH inline uint8_t gray_at(const DevicePicture& picture, const YcbcrForm& form, uint32_t x, uint32_t y) {
  return gray_of_luma(form.matrix, load_number(picture, 0, x, y));
}
MR_BOTH inline Rgb rgb_at(const DevicePicture& picture, const YcbcrForm& form, uint32_t x, uint32_t y) {
  const int32_t luma = load_number(picture, 0, x, y);
  const int32_t u = load_number(picture, 1, x / 2, y / 2), v = load_number(picture, 2, x / 2, y / 2);
  return picture.image.format == MR_PIXEL_P010 ? decoded_deep(form.matrix, luma, u, v)
                                               : decoded(form.decoding, luma, u, v);
}

// Changes the 2×2 pixels from even x and y on by `change(x, y, rgb)`, which gives three bytes. A pixel beyond the
// picture's edge counts in the chroma as its neighbour does.
template <class Change>
MR_BOTH void change_quad(const DevicePicture& picture, const YcbcrForm& form, uint32_t x, uint32_t y,
                         const Change& change) {
  int32_t red = 0, green = 0, blue = 0, luma[4] = {};
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t column = smaller(x + i % 2, picture.image.width - 1);
    const uint32_t row = smaller(y + i / 2, picture.image.height - 1);
    const Rgb color = rgb_at(picture, form, column, row);
    uint8_t bytes[3] = {color.r, color.g, color.b};
    change(column, row, bytes);
    red += bytes[0], green += bytes[1], blue += bytes[2];
    luma[i] = luma_of(form.matrix, bytes[0], bytes[1], bytes[2]);
  }
  for (uint32_t i = 0; i < 4; ++i) // once all are read
    if (x + i % 2 < picture.image.width && y + i / 2 < picture.image.height)
      store_number(picture, 0, x + i % 2, y + i / 2, luma[i]);
  store_number(picture, 1, x / 2, y / 2, cb_of(form.matrix, red, green, blue));
  store_number(picture, 2, x / 2, y / 2, cr_of(form.matrix, red, green, blue));
}

} // namespace millrace::handlers::gpu
