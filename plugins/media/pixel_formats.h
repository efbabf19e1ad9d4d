// Translates between the pixel formats and colour tags of millrace and FFmpeg.
#pragma once

#include <cstring>

#include "millrace/handler.h"
#include "plugins/media/av.h"

namespace millrace::media {

// AV_PIX_FMT_NONE for Pixel::none.
AVPixelFormat av_format_of(Pixel pixel);

// The format with the same bytes; Pixel::none if millrace has none.
Pixel pixel_of(AVPixelFormat format);

// The millrace format that keeps most of a picture; the same format if millrace has it. YCbCr stays YCbCr, and if it is
// deeper than 8 bits it stays deeper. RGB keeps its alpha, the others lose it. Pixel::none for pictures that are not in
// memory.
Pixel nearest_pixel(AVPixelFormat format);

// True if a matrix and a range define how the numbers become colours. has_matrix() in frames.h tells the same for
// FFmpeg's formats.
inline bool is_ycbcr(Pixel pixel) { return pixel == Pixel::nv12 || pixel == Pixel::i420 || pixel == Pixel::p010; }

// If the matrix is not tagged, players assume bt709 from this many rows on, and bt601 below.
inline constexpr int kHdRows = 720;

// The meaning of a picture's numbers.
struct Meaning {
  uint32_t color = MR_COLOR_SRGB;          // MR_COLOR_*: the matrix
  uint32_t range = MR_RANGE_FULL;          // MR_RANGE_*
  uint32_t primaries = 0;                  // code points of ITU-T H.273; 0: not known
  uint32_t transfer = 0;                   // likewise
  uint32_t aspect_num = 0, aspect_den = 0; // a pixel's width : height; 0/0: square
  bool guessed = false;                    // the matrix is not tagged, and guessed by the number of rows
  bool is_near = false;                    // millrace does not know the tagged matrix, and takes another
  friend bool operator==(const Meaning&, const Meaning&) = default;
};

// The meaning according to the tags of a stream or a picture. An untagged matrix is bt709 from 720 rows on, else bt601,
// as players assume. YCbCr has limited range unless it is tagged as full. The arguments are FFmpeg's numbers and may be
// none of its enumerators, since a file may contain any number (see number_of).
Meaning meaning_of(AVPixelFormat format, int matrix, int range, int primaries, int transfer, AVRational aspect,
                   int height);

using ffmpeg::number_of;

// FFmpeg's matrix and range for a picture. The matrix is AVCOL_SPC_UNSPECIFIED if the picture is not YCbCr.
AVColorSpace av_matrix_of(Pixel pixel, uint32_t color);
AVColorRange av_range_of(Pixel pixel, uint32_t range);

} // namespace millrace::media
