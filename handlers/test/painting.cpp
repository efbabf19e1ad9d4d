// Paints bars, a gradient, or a disc that moves.
#include "handlers/test/painting.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "handlers/test/burnt_number.h"

namespace millrace::handlers {
namespace {

using Rgb = std::array<uint8_t, 3>;

// The eight bars of a colour test at 75 %, bright to dark.
constexpr std::array<Rgb, 8> kBars = {
    {{191, 191, 191}, {191, 191, 0}, {0, 191, 191}, {0, 191, 0}, {191, 0, 191}, {191, 0, 0}, {0, 0, 191}, {0, 0, 0}}};
constexpr Rgb kBackground = {24, 32, 48};
constexpr Rgb kDisc = {255, 160, 32};

// 0, 1, … limit, limit − 1, … 0, 1, …
uint32_t bounce(uint64_t step, uint32_t limit) {
  if (limit == 0) return 0;
  const uint64_t phase = step % (2 * uint64_t{limit});
  return static_cast<uint32_t>(std::min(phase, 2 * uint64_t{limit} - phase));
}

uint8_t ramp(uint32_t i, uint32_t size) {
  return size < 2 ? uint8_t{0} : static_cast<uint8_t>(uint64_t{i} * 255 / (size - 1));
}

void set(uint8_t* pixel, const Rgb& color) { std::memcpy(pixel, color.data(), color.size()); }

void repeat_first_row(const ImageSpan& picture) {
  for (uint32_t y = 1; y < picture.height(); ++y)
    std::memcpy(picture.row(y), picture.row(0), size_t{picture.width()} * 3);
}

void paint_bars(const ImageSpan& picture) {
  uint8_t* row = picture.row(0);
  for (uint32_t x = 0; x < picture.width(); ++x)
    set(row + size_t{x} * 3, kBars[static_cast<size_t>(uint64_t{x} * kBars.size() / picture.width())]);
  repeat_first_row(picture);
}

// Red grows to the right, green downwards, blue goes up and down with the index.
void paint_gradient(uint64_t index, const ImageSpan& picture) {
  const uint8_t blue = static_cast<uint8_t>(bounce(index * 4, 255));
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
        set(picture.row(y) + x * 3, kDisc);
    }
  }
}

} // namespace

Disc disc_at(uint64_t index, uint32_t width, uint32_t height) {
  const uint32_t top = burnt_number_rows(height);
  const uint32_t room = height - std::min(top, height);
  const uint32_t radius = std::min(width, room) / 8;
  // Two speeds without a common divisor, so that the path fills the picture; slow enough to follow by eye at 30 a
  // second.
  const uint32_t x = radius + bounce(index * 5, width - std::min(width, 2 * radius + 1));
  const uint32_t y = top + radius + bounce(index * 3, room - std::min(room, 2 * radius + 1));
  return {std::min(x, width - 1), std::min(y, height - 1), radius};
}

void paint_pattern(Pattern pattern, uint64_t index, const ImageSpan& picture) {
  if (pattern == Pattern::bars) paint_bars(picture);
  if (pattern == Pattern::gradient) paint_gradient(index, picture);
  if (pattern == Pattern::disc) paint_disc(index, picture);
}

} // namespace millrace::handlers
