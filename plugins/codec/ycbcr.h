// Converts pictures to what encoders take and from what decoders make: RGB, and YCbCr with 4:2:0 chroma.
//
// Rules. Coefficients are fixed point with 16 bits of fraction, results are rounded half up and clamped. The chroma of
// a 2 × 2 block is that of the mean of its pixels; in the other direction all pixels of the block get its chroma. A
// column or row beyond the picture is the last one repeated. Matrices: ITU-R BT.601-7, BT.709-6, BT.2020-2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/codec/picture.h"

namespace millrace::codec {

// The planes of a YCbCr picture with 4:2:0 chroma, to write to.
struct I420Planes {
  uint8_t* y = nullptr;
  uint8_t* cb = nullptr;
  uint8_t* cr = nullptr;
  size_t y_stride = 0, cb_stride = 0, cr_stride = 0; // bytes from row to row
};

// To BT.709, limited range. An odd width or height is rounded up. The planes do not overlap the picture.
void to_i420(const Picture& picture, const I420Planes& target);

// To red, green, blue; gray becomes three equal numbers.
void to_rgb(const Picture& picture, uint8_t* target, size_t stride);

} // namespace millrace::codec
