// Turns counted levels into the light of a waveform monitor: the arithmetic of draw.waveform, for the CPU and for
// kernels.
//
// Rule. Levels and counts are whole numbers. A row's sum is single precision, added level after level without fused
// multiply-add, so CPU and GPU paint the same bytes.
#pragma once

#include <cstdint>

#include "handlers/gpu/both.h"

namespace millrace::handlers {

inline constexpr uint32_t kLevelCount = 256;

enum class LevelOf { luma, red, green, blue };

// Weighs red, green and blue in 8 bits, so that a sum fits 16 bits and four times as many go into a vector. The weights
// add up to 256, so that gray keeps its value.
MR_BOTH constexpr uint8_t luma_level(uint8_t red, uint8_t green, uint8_t blue) {
  return static_cast<uint8_t>(static_cast<uint16_t>(77 * red + 150 * green + 29 * blue + 128) >> 8);
}

// The levels first … last − 1 that row `row` of `rows`, counted from the top, shows. Levels are spread evenly over the
// rows, so the first and the last of them may lie in the row only in part.
struct LevelRange {
  uint32_t first, last;
};
MR_BOTH constexpr LevelRange levels_of_row(uint32_t row, uint32_t rows) {
  const uint64_t from_bottom = rows - 1 - row;
  return {static_cast<uint32_t>(from_bottom * kLevelCount / rows),
          static_cast<uint32_t>(((from_bottom + 1) * kLevelCount + rows - 1) / rows)};
}

// The part of a level that lies in a row, 0 … 1. In a monitor with more rows than levels, a row within one level shows
// all of it, so that a line does not fade because it is drawn large.
MR_BOTH constexpr float share_of_level(uint32_t level, uint32_t row, uint32_t rows) {
  // Computes in units of 1 / (rows · levels) of the monitor's height, in which both are whole numbers.
  const uint64_t row_from = uint64_t{rows - 1 - row} * kLevelCount, level_from = uint64_t{level} * rows;
  const uint64_t row_to = row_from + kLevelCount, level_to = level_from + rows;
  const uint64_t from = row_from > level_from ? row_from : level_from, to = row_to < level_to ? row_to : level_to;
  const uint64_t whole = rows < kLevelCount ? rows : kLevelCount;
  return from < to ? static_cast<float>(to - from) / static_cast<float>(whole) : 0.0f;
}

// ---- the ground -----------------------------------------------------------------------------------------------------

inline constexpr uint8_t kLineLight = 40; // brightness of the grid lines: visible, and never taken for a trace

// The row of a line; lines are at the quarters of the height.
MR_BOTH constexpr uint32_t line_row(uint32_t quarter, uint32_t rows) { return (rows - 1) * quarter / 4; }
MR_BOTH constexpr bool is_line(uint32_t row, uint32_t rows) {
  for (uint32_t quarter = 0; quarter <= 4; ++quarter)
    if (row == line_row(quarter, rows)) return true;
  return false;
}

// ---- the traces -----------------------------------------------------------------------------------------------------

// At gain 1, a level that this share of a stretch's pixels has is as bright as possible.
inline constexpr float kFullBrightShare = 1.0f / 64;

// The light of one counted pixel, if `pixels` are counted in `columns` stretches.
MR_BOTH constexpr float light_scale(uint64_t pixels, uint32_t columns, float gain) {
  const float in_stretch = static_cast<float>(pixels) / static_cast<float>(columns);
  return gain * 255.0f / (kFullBrightShare * in_stretch);
}

// The light of a row's sum; 255 is the brightest. If `scaled_sum` is a product, the caller rounds it first.
MR_BOTH constexpr uint32_t light_of(float scaled_sum) {
  const float light = scaled_sum + 0.5f;
  return static_cast<uint32_t>(static_cast<int32_t>(light < 255.0f ? light : 255.0f));
}

MR_BOTH constexpr uint8_t with_light(uint8_t byte, uint32_t light, uint8_t ink) {
  const uint32_t sum = byte + (light * ink + 127) / 255;
  return static_cast<uint8_t>(sum < 255 ? sum : 255);
}

} // namespace millrace::handlers
