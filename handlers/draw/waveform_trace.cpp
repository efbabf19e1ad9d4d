// A row of the monitor is a sum of rows of counts, so all of it vectorises.
#include "handlers/draw/waveform_trace.h"

#include <algorithm>

#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

constexpr uint8_t kLineLight = 40; // of the lines behind the traces: seen, and never taken for a trace

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

// Returns the brightest.
MILLRACE_VECTORIZE uint32_t to_light(const float* sums, uint32_t columns, float scale, uint32_t* light) {
  uint32_t most = 0;
  for (uint32_t x = 0; x < columns; ++x) {
    light[x] = static_cast<uint32_t>(static_cast<int32_t>(std::min(255.0f, sums[x] * scale + 0.5f)));
    most = std::max(most, light[x]);
  }
  return most;
}

template <uint32_t kChannels>
MILLRACE_VECTORIZE void add_light(const uint32_t* light, uint32_t columns, const Ink& ink, uint8_t* row) {
  for (uint32_t x = 0; x < columns; ++x)
    for (uint32_t c = 0; c < kChannels; ++c) {
      uint8_t& byte = row[size_t{x} * kChannels + c];
      byte = static_cast<uint8_t>(std::min<uint32_t>(255, byte + (light[x] * ink.channels[c] + 127) / 255));
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

LevelRange levels_of_row(uint32_t row, uint32_t rows) {
  const uint64_t from_bottom = rows - 1 - row;
  return {static_cast<uint32_t>(from_bottom * kLevelCount / rows),
          static_cast<uint32_t>(((from_bottom + 1) * kLevelCount + rows - 1) / rows)};
}

float share_of_level(uint32_t level, uint32_t row, uint32_t rows) {
  // In units of 1 / (rows · levels) of the monitor's height, where both are whole numbers.
  const uint64_t row_from = uint64_t{rows - 1 - row} * kLevelCount, level_from = uint64_t{level} * rows;
  const uint64_t from = std::max(row_from, level_from), to = std::min(row_from + kLevelCount, level_from + rows);
  const uint64_t whole = std::min(rows, kLevelCount);
  return from < to ? static_cast<float>(to - from) / static_cast<float>(whole) : 0.0f;
}

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
    const uint32_t y = (rows - 1) * quarter / 4;
    if (y != last) lighten(row_of(picture, area, y), width, bytes_per_pixel(picture.pixel()));
    last = y;
  }
}

void WaveformTrace::add(const ImageSpan& picture, const Rectangle& area, const ColumnLevels& levels, uint64_t pixels,
                        float gain, const Ink& ink) {
  const uint32_t columns = levels.columns(), rows = static_cast<uint32_t>(area.bottom - area.top);
  const float in_stretch = static_cast<float>(pixels) / static_cast<float>(columns);
  const float scale = gain * 255.0f / (kFullBrightShare * in_stretch);
  light_.resize(columns);
  for (uint32_t y = 0; y < rows; ++y) {
    const LevelRange range = levels_of_row(y, rows);
    sums_.assign(columns, 0.0f);
    for (uint32_t level = range.first; level < range.last; ++level)
      add_counts(levels.counts(level), columns, share_of_level(level, y, rows), sums_.data());
    if (to_light(sums_.data(), columns, scale, light_.data()) == 0) continue; // as most rows of most pictures
    uint8_t* row = row_of(picture, area, y);
    if (ink.channel_count == 1) add_light<1>(light_.data(), columns, ink, row);
    if (ink.channel_count == 3) add_light<3>(light_.data(), columns, ink, row);
    if (ink.channel_count == 4) add_light<4>(light_.data(), columns, ink, row);
  }
}

} // namespace millrace::handlers
