// Writes and reads the blocks of a burnt number. The reader decides by the brightness of the mark, not by fixed
// thresholds.
#include "handlers/test/burnt_number.h"

#include <algorithm>
#include <cstring>

namespace millrace::handlers {
namespace {

// If white and black of the mark differ by less than this, of 255, the picture is taken to carry no number.
constexpr uint32_t kContrastMin = 64;

// The first column of a block; block kNumberBlocks stands for the picture's width.
uint32_t block_begin(uint32_t block, uint32_t width) {
  return static_cast<uint32_t>(uint64_t{block} * width / kNumberBlocks);
}

// The mean of the middle third of a block, over the channels that carry brightness.
uint32_t brightness(const ImageView& picture, uint32_t block) {
  const uint32_t begin = block_begin(block, picture.width()), end = block_begin(block + 1, picture.width());
  const uint32_t inset = (end - begin) / 3, rows = burnt_number_rows(picture.height());
  const uint32_t pixel_bytes = bytes_per_pixel(picture.pixel()), channels = std::min(pixel_bytes, 3u);
  uint64_t sum = 0, count = 0;
  for (uint32_t y = rows / 3; y < rows - rows / 3; ++y) {
    for (uint32_t x = begin + inset; x < end - inset; ++x) {
      for (uint32_t c = 0; c < channels; ++c) sum += picture.row(y)[size_t{x} * pixel_bytes + c];
      count += channels;
    }
  }
  return static_cast<uint32_t>(sum / count);
}

} // namespace

void burn_number(const ImageSpan& picture, uint32_t number) {
  if (picture.width() < kNumberBlocks || picture.height() == 0) return;
  const uint32_t pixel_bytes = bytes_per_pixel(picture.pixel());
  uint8_t* first = picture.row(0);
  for (uint32_t block = 0; block < kNumberBlocks; ++block) {
    const uint32_t begin = block_begin(block, picture.width()), end = block_begin(block + 1, picture.width());
    const uint8_t level = block_of(number, block) ? 255 : 0;
    for (uint32_t x = begin; x < end; ++x) {
      std::memset(first + size_t{x} * pixel_bytes, level, pixel_bytes);
      if (pixel_bytes == 4) first[size_t{x} * 4 + 3] = 255;
    }
  }
  for (uint32_t y = 1; y < burnt_number_rows(picture.height()); ++y)
    std::memcpy(picture.row(y), first, size_t{picture.width()} * pixel_bytes);
}

std::optional<uint32_t> read_burnt_number(const ImageView& picture) {
  if (picture.width() < kNumberBlocks || picture.height() == 0 || picture.pixel() == Pixel::p010) return std::nullopt;
  const uint32_t white = (brightness(picture, 0) + brightness(picture, 2)) / 2;
  const uint32_t black = (brightness(picture, 1) + brightness(picture, 3)) / 2;
  if (white < black + kContrastMin) return std::nullopt;
  const auto is_white = [&](uint32_t block) { return 2 * brightness(picture, block) > white + black; };
  uint32_t number = 0;
  for (uint32_t block = 4; block < 36; ++block) number = number << 1 | (is_white(block) ? 1u : 0u);
  for (uint32_t block = 0; block < kNumberBlocks; ++block)
    if (is_white(block) != block_of(number, block)) return std::nullopt;
  return number;
}

} // namespace millrace::handlers
