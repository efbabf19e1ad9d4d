// Turns pictures. Rows that stay rows are copied, or reversed by shuffles. Turns that swap the sides go block by block:
// a block's rows stay in the first-level cache while its columns are read from them.
#include "handlers/image/turn.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "handlers/image/bytes16.h"
#include "handlers/image/planes.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

// The side of the square that is transposed at a time: 32 rows of 32 samples of 4 bytes are 4 KiB, for source and
// target each.
constexpr uint32_t kBlock = 32;

// The size of a plane in samples, and the bytes of a sample.
struct Samples {
  uint32_t width, height, bytes;
};

// Reverses a row in groups, which are stored from the end of the target backwards. A group of three-byte pixels has 15
// bytes: the byte before it, which is stored too, belongs to the next group and is overwritten by it.
MILLRACE_VECTORIZE void reverse_row(const uint8_t* in, uint32_t count, uint32_t bytes, uint8_t* out) {
  uint32_t x = 0;
  // clang-format off
  if (bytes == 1) {
    for (; x + 16 <= count; x += 16) {
      const Bytes16 group = load16(in + x);
      store16(out + (count - 16 - x),
              __builtin_shufflevector(group, group, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
    }
  } else if (bytes == 2) {
    for (; x + 8 <= count; x += 8) {
      const Bytes16 group = load16(in + size_t{x} * 2);
      store16(out + size_t{count - 8 - x} * 2,
              __builtin_shufflevector(group, group, 14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1));
    }
  } else if (bytes == 3) {
    for (; x + 6 <= count; x += 5) {
      const Bytes16 group = load16(in + size_t{x} * 3);
      store16(out + size_t{count - 5 - x} * 3 - 1,
              __builtin_shufflevector(group, group, 15, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2));
    }
  } else {
    for (; x + 4 <= count; x += 4) {
      const Bytes16 group = load16(in + size_t{x} * 4);
      store16(out + size_t{count - 4 - x} * 4,
              __builtin_shufflevector(group, group, 12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
    }
  }
  // clang-format on
  for (; x < count; ++x) std::memcpy(out + size_t{count - 1 - x} * bytes, in + size_t{x} * bytes, bytes);
}

void mirror_plane(Turn turn, const ImageView& source, const ImageSpan& target, uint32_t plane, const Samples& samples) {
  for (uint32_t y = 0; y < samples.height; ++y) {
    const uint8_t* in = source.row(turn == Turn::horizontal ? y : samples.height - 1 - y, plane);
    uint8_t* out = target.row(y, plane);
    if (turn == Turn::vertical) {
      std::memcpy(out, in, size_t{samples.width} * samples.bytes);
    } else {
      reverse_row(in, samples.width, samples.bytes, out);
    }
  }
}

// Copies a stretch of a column to a stretch of a row. `step` is the distance from row to row, negative if it goes
// upwards.
template <size_t kBytes>
void gather_column(const uint8_t* in, ptrdiff_t step, uint32_t count, uint8_t* out) {
  for (uint32_t i = 0; i < count; ++i, in += step, out += kBytes) std::memcpy(out, in, kBytes);
}

using Words4 = uint32_t __attribute__((vector_size(16)));

// Copies four columns of a source to four rows, up to the largest multiple of four within `count`; returns that number.
// Pixels of three bytes are spread to four, so that both kinds are turned as 32-bit words; for three bytes, the 4 bytes
// after the columns are read too.
MILLRACE_VECTORIZE uint32_t gather_four_columns(const uint8_t* in, ptrdiff_t step, uint32_t count, uint32_t bytes,
                                                uint8_t* const* out) {
  uint32_t i = 0;
  for (; i + 4 <= count; i += 4, in += 4 * step) {
    Bytes16 rows[4] = {load16(in), load16(in + step), load16(in + 2 * step), load16(in + 3 * step)};
    Words4 words[4];
    for (int k = 0; k < 4; ++k) {
      if (bytes == 3)
        rows[k] = __builtin_shufflevector(rows[k], rows[k], 0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0);
      words[k] = reinterpret_cast<Words4>(rows[k]);
    }
    const Words4 low_top = __builtin_shufflevector(words[0], words[1], 0, 4, 1, 5);
    const Words4 low_bottom = __builtin_shufflevector(words[2], words[3], 0, 4, 1, 5);
    const Words4 high_top = __builtin_shufflevector(words[0], words[1], 2, 6, 3, 7);
    const Words4 high_bottom = __builtin_shufflevector(words[2], words[3], 2, 6, 3, 7);
    const Words4 columns[4] = {__builtin_shufflevector(low_top, low_bottom, 0, 1, 4, 5),
                               __builtin_shufflevector(low_top, low_bottom, 2, 3, 6, 7),
                               __builtin_shufflevector(high_top, high_bottom, 0, 1, 4, 5),
                               __builtin_shufflevector(high_top, high_bottom, 2, 3, 6, 7)};
    for (int k = 0; k < 4; ++k) {
      Bytes16 column = reinterpret_cast<Bytes16>(columns[k]);
      if (bytes == 3) {
        column = __builtin_shufflevector(column, column, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0);
        std::memcpy(out[k] + size_t{i} * 3, &column, 12);
      } else {
        store16(out[k] + size_t{i} * 4, column);
      }
    }
  }
  return i;
}

// Target sample (x, y) is the source's (y, x), with the source's columns or rows counted from the other end if they are
// mirrored.
template <size_t kBytes>
void transpose_plane(Turn turn, const ImageView& source, const ImageSpan& target, uint32_t plane,
                     const Samples& samples) {
  const bool mirror_columns = turn == Turn::rotate270 || turn == Turn::transverse;
  const bool mirror_rows = turn == Turn::rotate90 || turn == Turn::transverse;
  const ptrdiff_t stride = source.stride(plane), step = mirror_rows ? -stride : stride;
  for (uint32_t top = 0; top < samples.width; top += kBlock) {
    const uint32_t bottom = std::min(top + kBlock, samples.width);
    for (uint32_t left = 0; left < samples.height; left += kBlock) {
      const uint32_t count = std::min(kBlock, samples.height - left);
      const uint8_t* first = source.row(mirror_rows ? samples.height - 1 - left : left, plane);
      const auto gather = [&](uint32_t y, uint32_t done) {
        const uint32_t column = mirror_columns ? samples.width - 1 - y : y;
        gather_column<kBytes>(first + size_t{column} * kBytes + done * step, step, count - done,
                              target.row(y, plane) + size_t{left + done} * kBytes);
      };
      uint32_t y = top;
      for (; kBytes >= 3 && y + 4 <= bottom; y += 4) {
        const uint32_t column = mirror_columns ? samples.width - 4 - y : y;
        uint32_t done = 0;
        if (size_t{column} * kBytes + 16 <= size_t{samples.width} * kBytes) {
          uint8_t* rows[4];
          for (uint32_t k = 0; k < 4; ++k)
            rows[k] = target.row(mirror_columns ? y + 3 - k : y + k, plane) + size_t{left} * kBytes;
          done = gather_four_columns(first + size_t{column} * kBytes, step, count, kBytes, rows);
        }
        for (uint32_t k = 0; k < 4; ++k) gather(y + k, done);
      }
      for (; y < bottom; ++y) gather(y, 0);
    }
  }
}

} // namespace

void turn_picture(Turn turn, const ImageView& source, const ImageSpan& target) {
  const bool swapped = swaps_sides(turn);
  if (source.pixel() != target.pixel() || source.width() != (swapped ? target.height() : target.width()) ||
      source.height() != (swapped ? target.width() : target.height()))
    throw std::invalid_argument("a turn keeps the format of a picture, and its sides or their exchange");
  for (uint32_t plane = 0; plane < source.plane_count(); ++plane) {
    const Samples samples = {plane_extent(source.pixel(), source.width(), plane), source.rows(plane),
                             sample_bytes(source.pixel(), plane)};
    if (!swapped) {
      mirror_plane(turn, source, target, plane, samples);
    } else if (samples.bytes == 1) {
      transpose_plane<1>(turn, source, target, plane, samples);
    } else if (samples.bytes == 2) {
      transpose_plane<2>(turn, source, target, plane, samples);
    } else if (samples.bytes == 3) {
      transpose_plane<3>(turn, source, target, plane, samples);
    } else {
      transpose_plane<4>(turn, source, target, plane, samples);
    }
  }
}

} // namespace millrace::handlers
