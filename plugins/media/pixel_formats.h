// millrace's pixel formats and colour tags beside FFmpeg's.
#pragma once

#include <cstring>

#include "millrace/handler.h"
#include "plugins/media/av.h"

namespace millrace::media {

// AV_PIX_FMT_NONE for Pixel::none.
AVPixelFormat av_format_of(Pixel pixel);

// The same format with the same bytes; Pixel::none where millrace has none.
Pixel pixel_of(AVPixelFormat format);

// The format of millrace's that keeps most of a picture; the same where there is one. YCbCr stays YCbCr, and deeper
// than 8 bits stays deeper; RGB keeps its alpha, the others lose it. Pixel::none for pictures that are not in memory.
Pixel nearest_pixel(AVPixelFormat format);

// True if a matrix and a range say how its numbers become colours. has_matrix in frames.h says it of FFmpeg's formats.
inline bool is_ycbcr(Pixel pixel) { return pixel == Pixel::nv12 || pixel == Pixel::i420 || pixel == Pixel::p010; }

// Rows from which on players take a matrix that is not said as bt709; below it as bt601.
inline constexpr int kHdRows = 720;

// What the numbers of a picture mean.
struct Meaning {
  uint32_t color = MR_COLOR_SRGB;          // MR_COLOR_*: the matrix
  uint32_t range = MR_RANGE_FULL;          // MR_RANGE_*
  uint32_t primaries = 0;                  // code points of ITU-T H.273; 0: not said
  uint32_t transfer = 0;                   // likewise
  uint32_t aspect_num = 0, aspect_den = 0; // of a pixel; 0/0: square
  bool guessed = false;                    // the matrix is not said, and taken by the number of rows
  bool is_near = false;                    // millrace does not know the matrix that is said, and takes another
  friend bool operator==(const Meaning&, const Meaning&) = default;
};

// From what a stream or a picture of it says. A matrix that is not said is bt709 from 720 rows on, else bt601, as
// players take it; numbers of YCbCr are limited unless full is said.
// The numbers are FFmpeg's, and may be none of its names: a file may say anything (see number_of).
Meaning meaning_of(AVPixelFormat format, int matrix, int range, int primaries, int transfer, AVRational aspect,
                   int height);

// What an enumeration of FFmpeg's holds where a file decides: C++ may not look at it as the enumeration.
template <class Enum>
int number_of(const Enum& named) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &named, sizeof number);
  return number;
}

// The matrix and range of a picture for FFmpeg: AVCOL_SPC_UNSPECIFIED for numbers that are no YCbCr.
AVColorSpace av_matrix_of(Pixel pixel, uint32_t color);
AVColorRange av_range_of(Pixel pixel, uint32_t range);

} // namespace millrace::media
