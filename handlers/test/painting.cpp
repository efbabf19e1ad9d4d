// Paints bars, a gradient, or a disc that moves.
#include "handlers/test/painting.h"

#include <algorithm>
#include <cstring>

namespace millrace::handlers {
namespace {

using gpu::Rgb;

uint8_t ramp(uint32_t i, uint32_t size) {
  return size < 2 ? uint8_t{0} : static_cast<uint8_t>(uint64_t{i} * 255 / (size - 1));
}

void set(uint8_t* pixel, const Rgb& color) { std::memcpy(pixel, &color, sizeof color); }

void repeat_first_row(const ImageSpan& picture) {
  for (uint32_t y = 1; y < picture.height(); ++y)
    std::memcpy(picture.row(y), picture.row(0), size_t{picture.width()} * 3);
}

void paint_bars(const ImageSpan& picture) {
  uint8_t* row = picture.row(0);
  for (uint32_t x = 0; x < picture.width(); ++x)
    set(row + size_t{x} * 3, bar_color(static_cast<uint32_t>(uint64_t{x} * kBarCount / picture.width())));
  repeat_first_row(picture);
}

// Red grows to the right, green downwards, blue goes up and down with the index.
void paint_gradient(uint64_t index, const ImageSpan& picture) {
  const uint8_t blue = gradient_blue(index);
  for (uint32_t x = 0; x < picture.width(); ++x)
    set(picture.row(0) + size_t{x} * 3, {ramp(x, picture.width()), 0, blue});
  repeat_first_row(picture);
  for (uint32_t y = 1; y < picture.height(); ++y) {
    uint8_t* row = picture.row(y);
    const uint8_t green = ramp(y, picture.height());
    for (uint32_t x = 0; x < picture.width(); ++x) row[size_t{x} * 3 + 1] = green;
  }
}

void paint_disc(uint64_t index, const ImageSpan& picture) {
  for (uint32_t x = 0; x < picture.width(); ++x) set(picture.row(0) + size_t{x} * 3, kBackground);
  repeat_first_row(picture);
  const Disc disc = disc_at(index, picture.width(), picture.height());
  const int64_t radius = disc.radius;
  const uint32_t bottom = std::min(disc.centre_y + disc.radius, picture.height() - 1);
  for (uint32_t y = disc.centre_y - std::min(disc.centre_y, disc.radius); y <= bottom; ++y) {
    const int64_t dy = int64_t{y} - disc.centre_y;
    for (int64_t dx = -radius; dx <= radius; ++dx) {
      const int64_t x = int64_t{disc.centre_x} + dx;
      if (x >= 0 && x < int64_t{picture.width()} && dx * dx + dy * dy <= radius * radius)
        set(picture.row(y) + x * 3, kDiscColor);
    }
  }
}

} // namespace

void paint_pattern(Pattern pattern, uint64_t index, const ImageSpan& picture) {
  if (pattern == Pattern::bars) paint_bars(picture);
  if (pattern == Pattern::gradient) paint_gradient(index, picture);
  if (pattern == Pattern::disc) paint_disc(index, picture);
}

} // namespace millrace::handlers
