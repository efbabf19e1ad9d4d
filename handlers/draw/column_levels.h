// Counts how often each level occurs in each stretch of columns of a picture, which a waveform monitor shows.
//
// Rules. A picture of `width` pixels is cut into `columns` stretches: pixel x belongs to stretch x · columns / width,
// rounded down. Every pixel counts once. Luma is BT.601 in 8 bits, at most 1 away from the real-valued formula; the
// only channel of a gray picture serves as its luma and as each of its colours.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <vector>

#include "handlers/gpu/waveform_light.h"

namespace millrace::handlers {

// The separated channels of one row at a time. Owned by one thread; allocates only if a row is longer than reserved.
class LevelRow {
 public:
  void reserve(uint32_t width);
  // Reads a row of an interleaved 8-bit picture. The row must stay valid until the next read(): a gray row is not
  // copied.
  void read(const uint8_t* row, Pixel pixel, uint32_t width);
  // A level for every pixel of the row; valid until the next read().
  const uint8_t* of(LevelOf channel);

 private:
  uint32_t width_ = 0;
  const uint8_t* gray_ = nullptr; // the row itself if the picture is gray, else null
  std::vector<uint8_t> red_, green_, blue_, alpha_, luma_;
};

// The counts of one channel. Owned by one thread. Does not allocate for pictures and column counts within the reserved
// size.
class ColumnLevels {
 public:
  void reserve(uint32_t picture_width, uint32_t columns);
  // Forgets all counts; 1 <= columns <= picture_width.
  void begin(uint32_t picture_width, uint32_t columns);
  // Adds the pixels of one row.
  void add(const uint8_t* levels);

  uint32_t columns() const { return columns_; }
  // The counts of one level, one for each stretch of columns.
  const uint32_t* counts(uint32_t level) const { return counts_.data() + size_t{level} * columns_; }

 private:
  uint32_t width_ = 0, columns_ = 0;
  std::vector<uint32_t> counts_;    // [level][column]
  std::vector<uint32_t> column_of_; // [x]
};

} // namespace millrace::handlers
