// Paints flat colours into pictures of interleaved 8-bit channels, clipped to the picture, blended by alpha. Colours
// are converted here for the pictures of all formats.
#pragma once

#include <millrace/payload.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "handlers/gpu/both.h"

namespace millrace::handlers {

struct Color {
  uint8_t r = 0, g = 0, b = 0, a = 255;
  friend bool operator==(const Color&, const Color&) = default;
};
// Parses "#rrggbb" or "#rrggbbaa"; empty if the text is neither.
std::optional<Color> parse_color(std::string_view text);

// The numbers that a picture has for a colour: its format and, for YCbCr, its matrix and range (MR_COLOR_*,
// MR_RANGE_*).
struct ColorForm {
  ColorForm(Pixel of) : pixel(of) {}
  explicit ColorForm(const ImageView& picture)
      : pixel(picture.pixel()), color(picture.value().as.image.color), range(picture.range()) {}
  Pixel pixel;
  uint32_t color = 0, range = 0;
};

// A colour in the numbers of a picture.
struct Ink {
  uint8_t channels[4]; // in the order of an interleaved format; gray8 has the colour's BT.601 luma
  uint32_t channel_count;
  uint8_t alpha;
  // If chroma is halved: 0, Y, Cb and Cr, rounded to the picture's 8 or 10 bits, which are the upper ones of 16. They
  // are in the order of an InkedPixel.
  uint16_t parts[4] = {};
};
Ink ink_of(Color color, const ColorForm& form);

// Blends the ink over one pixel with alpha times coverage / 255, rounded to nearest. An alpha channel of the target
// grows towards opaque.
MR_BOTH inline void blend(uint8_t* pixel, const Ink& ink, uint32_t coverage) {
  const uint32_t alpha = (coverage * ink.alpha + 127) / 255;
  for (uint32_t c = 0; c < ink.channel_count; ++c)
    pixel[c] = static_cast<uint8_t>((pixel[c] * (255 - alpha) + ink.channels[c] * alpha + 127) / 255);
}

// Pixels left … right − 1, top … bottom − 1. Any numbers are allowed; parts outside the picture are not painted.
struct Rectangle {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
};
inline constexpr int64_t kFar = int64_t{1} << 48; // beyond all pictures, and any sum of such numbers fits
inline constexpr Rectangle kEverywhere = {-kFar, -kFar, kFar, kFar};
// The part of both; `left` is not below `right` only if there is none, or `top` not below `bottom`.
inline Rectangle common_part(const Rectangle& a, const Rectangle& b) {
  return {std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right), std::min(a.bottom, b.bottom)};
}
// The border of a rectangle, `thickness` pixels inwards, as parts that do not overlap; some may be empty.
std::array<Rectangle, 4> frame_parts(const Rectangle& area, int64_t thickness);

void fill_rectangle(const ImageSpan& picture, Rectangle area, const Ink& ink);
void draw_frame(const ImageSpan& picture, Rectangle area, int64_t thickness, const Ink& ink);

} // namespace millrace::handlers
