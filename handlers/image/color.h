// Changes the pixel format of a picture: gray, RGB in four orders, and YCbCr 4:2:0 in three layouts.
//
// Rules. Coefficients are fixed point: 15 bits for gray, 16 to YCbCr, 13 from it. A result is rounded half up and
// clamped to 0…255, and differs from the real-valued formula by at most 1.
//  - Gray is BT.601 luma, 0.299 R + 0.587 G + 0.114 B, full range; from YCbCr it is the luma plane, scaled to full
//    range.
//  - YCbCr is BT.601, BT.709 or BT.2020 (ITU-R BT.601-7, BT.709-6), limited (16…235, 16…240) or full range, as the
//    pictures' color and range say; color `srgb` on a YCbCr picture means BT.601.
//  - The chroma of a 2x2 block is that of the mean of its pixels (at odd edges, of those inside the picture). In the
//    other direction all pixels of the block get its chroma.
//  - p010 has 10 bits, in the upper bits of 16 (the others are ignored when read, and written as 0). From RGB all 10
//  are
//    calculated, rounded half up; to RGB they are rounded to 8. Between p010 and 8 bits of the same matrix and range
//    each number is scaled: by 4 in limited range, by 1023/255 in full range; to 8 bits it is rounded half up. Between
//    different matrices or ranges the conversion goes through RGB of 8 bits.
//  - Alpha is kept between formats that have it, 255 if the source has none, and dropped if the target has none.
#pragma once

#include <millrace/payload.h>

namespace millrace::handlers {

// True for all formats except Pixel::none.
bool can_convert(Pixel pixel);

// Converts to the format, color and range that the target is tagged with. Both pictures have the same size and do not
// overlap. Allocates nothing. Throws std::invalid_argument if the sizes differ or a format cannot be converted.
void convert_pixels(const ImageView& source, const ImageSpan& target);

} // namespace millrace::handlers
