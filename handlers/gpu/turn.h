// image.flip and image.crop on a GPU: samples change their place but not their bytes.
//
// Rule. The bytes are those of turn_picture() of handlers/image/turn.h and crop_picture() of
// handlers/image/crop_picture.h.
#pragma once

#include "handlers/gpu/samples.h"
#include "handlers/image/crop_picture.h"
#include "handlers/image/picture.h"
#include "handlers/image/planes.h"
#include "handlers/image/turn.h"

namespace millrace::handlers::gpu {

// Rows of bytes to copy from one place to another. `source_step` is negative if the picture is turned upside down.
struct RowCopy {
  const uint8_t* source;
  uint8_t* target;
  int64_t source_step, target_step;
  uint32_t bytes, rows;
};

// The copy of one plane, for the part of a picture that begins at (x, y) and is as large as the target.
inline RowCopy row_copy(const DevicePicture& source, uint32_t x, uint32_t y, const DevicePicture& target,
                        uint32_t plane, bool upwards) {
  const Pixel pixel = static_cast<Pixel>(target.image.format);
  const mr_plane &from = source.image.planes[plane], &to = target.image.planes[plane];
  const bool halved = plane > 0 && halves_chroma(pixel);
  const uint64_t row = (halved ? y / 2 : y) + (upwards ? to.rows - 1 : 0);
  const uint64_t column = uint64_t{halved ? x / 2 : x} * sample_bytes(pixel, plane);
  return {source.data + from.offset + row * from.stride + column,
          target.data + to.offset,
          upwards ? -int64_t{from.stride} : int64_t{from.stride},
          int64_t{to.stride},
          static_cast<uint32_t>(plane_row_bytes(pixel, target.image.width, plane)),
          to.rows};
}

// Copies sixteen bytes from byte x of row y on.
MR_BOTH inline void copy_sixteen(const RowCopy& copy, uint32_t x, uint32_t y) {
  const uint8_t* from = copy.source + copy.source_step * y + x;
  uint8_t* to = copy.target + copy.target_step * y + x;
  if (x + 16 > copy.bytes || !fits_words<16>(to)) {
    for (uint32_t i = 0; i < 16 && x + i < copy.bytes; ++i) to[i] = from[i];
  } else if (fits_words<16>(from)) {
    store_words(to, load_words<16>(from));
  } else {
    Words<16> words;
    for (uint32_t i = 0; i < 4; ++i) words.word[i] = load_cut<4>(from + 4 * i);
    store_words(to, words);
  }
}

// One plane of a picture to be turned; width and height are the target's, in samples.
struct PlaneTurn {
  const uint8_t* source;
  uint8_t* target;
  size_t source_stride, target_stride;
  uint32_t width, height;
  Turn turn;
};

inline PlaneTurn plane_turn(Turn turn, const DevicePicture& source, const DevicePicture& target, uint32_t plane) {
  const mr_plane &from = source.image.planes[plane], &to = target.image.planes[plane];
  const uint32_t width = plane_extent(static_cast<Pixel>(target.image.format), target.image.width, plane);
  return {source.data + from.offset, target.data + to.offset, from.stride, to.stride, width, to.rows, turn};
}

// Stores four samples from (x, y) of the target on, from a source row that is mirrored but stays a row.
template <uint32_t kBytes>
MR_BOTH void mirror_four(const PlaneTurn& plane, uint32_t x, uint32_t y) {
  const uint32_t count = smaller(4, plane.width - x);
  const uint32_t line = plane.turn == Turn::both ? plane.height - 1 - y : y;
  const uint8_t* row = plane.source + line * plane.source_stride;
  uint32_t samples[4];
  for (uint32_t i = 0; i < 4; ++i) samples[i] = load_sample<kBytes>(row, plane.width - 1 - x - smaller(i, count - 1));
  store_samples<kBytes>(plane.target + y * plane.target_stride, x, samples, count);
}

// Turns that swap the sides go through squares in shared memory, so that both pictures are accessed along their rows.
// The spare column puts the samples of a column into different banks.
inline constexpr uint32_t kSquare = 32;
struct TurnSquare {
  uint32_t sample[kSquare][kSquare + 1]; // [column of the target][row of the target]
};

// Loads the sample whose place in the square at (left, top) of the target is (column, row).
template <uint32_t kBytes>
MR_BOTH void load_turned(const PlaneTurn& plane, uint32_t left, uint32_t top, uint32_t column, uint32_t row,
                         TurnSquare& square) {
  const uint32_t x = left + column, y = top + row;
  if (x >= plane.width || y >= plane.height) return;
  const bool mirror_columns = plane.turn == Turn::rotate270 || plane.turn == Turn::transverse;
  const bool mirror_rows = plane.turn == Turn::rotate90 || plane.turn == Turn::transverse;
  const uint32_t source_x = mirror_columns ? plane.height - 1 - y : y;
  const uint32_t source_y = mirror_rows ? plane.width - 1 - x : x;
  square.sample[column][row] = load_sample<kBytes>(plane.source + source_y * plane.source_stride, source_x);
}

// Stores four samples of the square, from (column, row) on.
template <uint32_t kBytes>
MR_BOTH void store_turned(const PlaneTurn& plane, uint32_t left, uint32_t top, uint32_t column, uint32_t row,
                          const TurnSquare& square) {
  const uint32_t x = left + column, y = top + row;
  if (x >= plane.width || y >= plane.height) return;
  uint32_t samples[4];
  for (uint32_t i = 0; i < 4; ++i) samples[i] = square.sample[column + i][row];
  store_samples<kBytes>(plane.target + y * plane.target_stride, x, samples, smaller(4, plane.width - x));
}

} // namespace millrace::handlers::gpu
