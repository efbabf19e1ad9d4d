// Changes the pixel format of a picture: gray, RGB in four orders, and YCbCr 4:2:0 in three layouts.
//
// Rules. Coefficients are fixed point: 15 bits for gray, 16 to YCbCr, 13 from it. A result is rounded half up and
// clamped to 0…255, and differs from the real-valued formula by at most 1.
//  - Gray is BT.601 luma, 0.299 R + 0.587 G + 0.114 B, full range; from YCbCr it is the luma plane, brought to full
//  range.
//  - YCbCr is BT.601, BT.709 or BT.2020 (ITU-R BT.601-7, BT.709-6), limited (16…235, 16…240) or full range, as the
//    pictures' color and range say; color `srgb` on a YCbCr picture means BT.601.
//  - Chroma of a 2x2 block is that of the mean of its pixels (of those that there are, at odd edges); back, all
//    pixels of the block have its chroma.
//  - p010 has 10 bits, in the upper ones of 16 (the others are read past, and written as 0). Made from RGB all 10 are
//    calculated, rounded half up; to RGB they are rounded to 8. Between p010 and 8 bits of the same matrix and range
//    each number is scaled: by 4 where the range is limited, by 1023/255 where it is full; back, rounded half up.
//    Between different matrices or ranges the way is RGB of 8 bits.
//  - Alpha is kept between formats that have it, 255 where the source has none, and dropped where the target has none.
#pragma once

#include <millrace/payload.h>

namespace millrace::handlers {

// All formats, but none.
bool can_convert(Pixel pixel);

// Both of one size, not overlapping. The target's format, color and range are what it is tagged with. Allocates
// nothing. Throws std::invalid_argument where the sizes differ or a format cannot be converted.
void convert_pixels(const ImageView& source, const ImageSpan& target);

} // namespace millrace::handlers
