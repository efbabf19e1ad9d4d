// Writes pictures with transparency into a palette, for GIF: a pixel is there or not.
#pragma once

#include "millrace/handler.h"
#include "plugins/media/av.h"

namespace millrace::media {

// Completes a frame of PAL8 whose pixels libswscale has written as RGB8 (three bits of red and green, two of blue):
// makes its palette, with one colour of the 256 given up for transparency, and takes the pixels of less than half the
// full alpha out. `picture` is rgba8 or bgra8.
void make_palette(const ImageView& picture, AVFrame& frame);

} // namespace millrace::media
