// Paints flat colours into pictures of interleaved 8-bit channels, clipped to the picture, blended by alpha.
#pragma once

#include <millrace/payload.h>

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

// The bytes of a colour in the order of a pixel format; gray8 has its BT.601 luma.
struct Ink {
  uint8_t channels[4];
  uint32_t channel_count;
  uint8_t alpha;
};
Ink ink_of(Color color, Pixel pixel);

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
void fill_rectangle(const ImageSpan& picture, Rectangle area, const Ink& ink);
// Paints the border of a rectangle, `thickness` pixels inwards; no pixel is painted twice.
void draw_frame(const ImageSpan& picture, Rectangle area, int64_t thickness, const Ink& ink);

} // namespace millrace::handlers
