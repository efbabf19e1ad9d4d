// Paints counted levels as a waveform monitor: columns of the picture from left to right, levels from bottom to top.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <vector>

#include "handlers/draw/column_levels.h"
#include "handlers/draw/raster.h"

namespace millrace::handlers {

// Adds the light of traces, row by row, to the picture. Owned by one thread. Does not allocate for rows within the
// reserved width.
class WaveformTrace {
 public:
  void reserve(uint32_t width);

  // Paints the background of `area`: the picture darkened by half, or black if `opaque`, with faint lines at 0, 25, 50,
  // 75 and 100 % of the range. The area must lie within the picture.
  void paint_ground(const ImageSpan& picture, const Rectangle& area, bool opaque);

  // Adds one trace of `levels` to the area, which is levels.columns() wide. Brightness is gain times the share of the
  // stretch's pixels, in the ink's colour. `pixels` is the number of pixels counted over all stretches: the picture's
  // width times its height.
  void add(const ImageSpan& picture, const Rectangle& area, const ColumnLevels& levels, uint64_t pixels, float gain,
           const Ink& ink);

 private:
  std::vector<float> sums_;     // pixel counts of one row
  std::vector<uint32_t> light_; // and their brightness
};

} // namespace millrace::handlers
