// Paints counted levels as a waveform monitor: columns of the picture from left to right, levels from bottom to top.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <vector>

#include "handlers/draw/column_levels.h"
#include "handlers/draw/raster.h"

namespace millrace::handlers {

// Adds the light of traces, row by row, to what is there. Owned by one thread; rows within what was reserved allocate
// nothing.
class WaveformTrace {
 public:
  void reserve(uint32_t width);

  // The picture within `area` before any trace: darkened by half, or black where `opaque`, with faint lines at 0, 25,
  // 50, 75 and 100 % of the range. The area lies within the picture.
  void paint_ground(const ImageSpan& picture, const Rectangle& area, bool opaque);

  // Adds one trace of `levels` to the area, which is levels.columns() wide: brightness is gain times the share of the
  // stretch's pixels, in the ink's colour. `pixels`: how many the picture has in one row of stretches, that is, its
  // width times its height.
  void add(const ImageSpan& picture, const Rectangle& area, const ColumnLevels& levels, uint64_t pixels, float gain,
           const Ink& ink);

 private:
  std::vector<float> sums_;     // of one row: how many pixels
  std::vector<uint32_t> light_; // and how bright that is
};

} // namespace millrace::handlers
