// Paints traces of a waveform monitor. A row of the monitor is a sum of rows of counts, so all of it vectorises.
#include "handlers/draw/waveform_trace.h"

#include <algorithm>

#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

MILLRACE_VECTORIZE void darken(uint8_t* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(bytes[i] >> 1);
}

void lighten(uint8_t* row, uint32_t columns, uint32_t channels) {
  for (size_t i = 0; i < size_t{columns} * channels; ++i)
    row[i] = static_cast<uint8_t>(std::min(255, row[i] + kLineLight));
}

MILLRACE_VECTORIZE void add_counts(const uint32_t* counts, uint32_t columns, float share, float* sums) {
  for (uint32_t x = 0; x < columns; ++x) sums[x] += share * static_cast<float>(static_cast<int32_t>(counts[x]));
}

// Returns the brightest light of the row.
MILLRACE_VECTORIZE uint32_t to_light(const float* sums, uint32_t columns, float scale, uint32_t* light) {
  uint32_t most = 0;
  for (uint32_t x = 0; x < columns; ++x) {
    light[x] = light_of(sums[x] * scale);
    most = std::max(most, light[x]);
  }
  return most;
}

template <uint32_t kChannels>
MILLRACE_VECTORIZE void add_light(const uint32_t* light, uint32_t columns, const Ink& ink, uint8_t* row) {
  for (uint32_t x = 0; x < columns; ++x)
    for (uint32_t c = 0; c < kChannels; ++c) {
      uint8_t& byte = row[size_t{x} * kChannels + c];
      byte = with_light(byte, light[x], ink.channels[c]);
    }
}

void make_opaque(uint8_t* row, uint32_t columns) {
  for (uint32_t x = 0; x < columns; ++x) row[size_t{x} * 4 + 3] = 255;
}

uint8_t* row_of(const ImageSpan& picture, const Rectangle& area, uint32_t row) {
  return picture.row(static_cast<uint32_t>(area.top) + row) +
         static_cast<size_t>(area.left) * bytes_per_pixel(picture.pixel());
}

} // namespace

void WaveformTrace::reserve(uint32_t width) {
  sums_.reserve(width);
  light_.reserve(width);
}

void WaveformTrace::paint_ground(const ImageSpan& picture, const Rectangle& area, bool opaque) {
  const auto width = static_cast<uint32_t>(area.right - area.left),
             rows = static_cast<uint32_t>(area.bottom - area.top);
  const size_t bytes = size_t{width} * bytes_per_pixel(picture.pixel());
  for (uint32_t y = 0; y < rows; ++y) {
    uint8_t* row = row_of(picture, area, y);
    if (opaque)
      std::fill_n(row, bytes, uint8_t{0});
    else
      darken(row, bytes);
    if (bytes_per_pixel(picture.pixel()) == 4) make_opaque(row, width);
  }
  for (uint32_t quarter = 0, last = rows; quarter <= 4; ++quarter) {
    const uint32_t y = line_row(quarter, rows);
    if (y != last) lighten(row_of(picture, area, y), width, bytes_per_pixel(picture.pixel()));
    last = y;
  }
}

void WaveformTrace::add(const ImageSpan& picture, const Rectangle& area, const ColumnLevels& levels, uint64_t pixels,
                        float gain, const Ink& ink) {
  const uint32_t columns = levels.columns(), rows = static_cast<uint32_t>(area.bottom - area.top);
  const float scale = light_scale(pixels, columns, gain);
  light_.resize(columns);
  for (uint32_t y = 0; y < rows; ++y) {
    const LevelRange range = levels_of_row(y, rows);
    sums_.assign(columns, 0.0f);
    for (uint32_t level = range.first; level < range.last; ++level)
      add_counts(levels.counts(level), columns, share_of_level(level, y, rows), sums_.data());
    if (to_light(sums_.data(), columns, scale, light_.data()) == 0) continue; // true for most rows of most pictures
    uint8_t* row = row_of(picture, area, y);
    if (ink.channel_count == 1) add_light<1>(light_.data(), columns, ink, row);
    if (ink.channel_count == 3) add_light<3>(light_.data(), columns, ink, row);
    if (ink.channel_count == 4) add_light<4>(light_.data(), columns, ink, row);
  }
}

} // namespace millrace::handlers
