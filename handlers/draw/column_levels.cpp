// Counts levels in two steps a row: computing the levels, which vectorises, and counting them, which does not.
#include "handlers/draw/column_levels.h"

#include <algorithm>

#include "handlers/image/interleave.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

MILLRACE_VECTORIZE void mix_luma(const uint8_t* red, const uint8_t* green, const uint8_t* blue, uint32_t width,
                                 uint8_t* luma) {
  for (uint32_t x = 0; x < width; ++x) luma[x] = luma_level(red[x], green[x], blue[x]);
}

// Neighbouring pixels mostly have the same level and the same stretch. Counting them one after the other would make the
// second wait for the first one's store, so the loop alternates between the left and the right half of the row.
void count_levels(const uint8_t* levels, const uint32_t* column_of, uint32_t width, uint32_t columns,
                  uint32_t* counts) {
  const uint32_t half = width / 2;
  for (uint32_t x = 0; x < half; ++x) {
    ++counts[levels[x] * columns + column_of[x]];
    ++counts[levels[half + x] * columns + column_of[half + x]];
  }
  if (width % 2 > 0) ++counts[levels[width - 1] * columns + column_of[width - 1]];
}

} // namespace

void LevelRow::reserve(uint32_t width) {
  for (auto* channel : {&red_, &green_, &blue_, &alpha_, &luma_}) channel->reserve(width);
}

void LevelRow::read(const uint8_t* row, Pixel pixel, uint32_t width) {
  gray_ = pixel == Pixel::gray8 ? row : nullptr;
  if (gray_) return;
  width_ = width;
  for (auto* channel : {&red_, &green_, &blue_, &alpha_, &luma_}) channel->resize(width);
  const bool blue_first = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
  uint8_t *first = (blue_first ? blue_ : red_).data(), *last = (blue_first ? red_ : blue_).data();
  if (bytes_per_pixel(pixel) == 4)
    unpack4(row, width, first, green_.data(), last, alpha_.data());
  else
    unpack3(row, width, first, green_.data(), last);
}

const uint8_t* LevelRow::of(LevelOf channel) {
  if (gray_) return gray_;
  if (channel == LevelOf::red) return red_.data();
  if (channel == LevelOf::green) return green_.data();
  if (channel == LevelOf::blue) return blue_.data();
  mix_luma(red_.data(), green_.data(), blue_.data(), width_, luma_.data());
  return luma_.data();
}

void ColumnLevels::reserve(uint32_t picture_width, uint32_t columns) {
  counts_.reserve(size_t{columns} * kLevelCount);
  column_of_.reserve(picture_width);
}

void ColumnLevels::begin(uint32_t picture_width, uint32_t columns) {
  counts_.assign(size_t{columns} * kLevelCount, 0);
  if (width_ == picture_width && columns_ == columns) return;
  width_ = picture_width;
  columns_ = columns;
  column_of_.resize(picture_width);
  for (uint32_t x = 0; x < picture_width; ++x)
    column_of_[x] = static_cast<uint32_t>(uint64_t{x} * columns / picture_width);
}

void ColumnLevels::add(const uint8_t* levels) {
  count_levels(levels, column_of_.data(), width_, columns_, counts_.data());
}

} // namespace millrace::handlers
