// Paints flat colours: clips once a rectangle, then goes row by row.
#include "handlers/draw/raster.h"

#include <algorithm>
#include <array>

#include "handlers/gpu/color_math.h"

namespace millrace::handlers {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

} // namespace

std::optional<Color> parse_color(std::string_view text) {
  if ((text.size() != 7 && text.size() != 9) || text[0] != '#') return std::nullopt;
  std::array<uint8_t, 4> bytes = {0, 0, 0, 255};
  for (size_t i = 0; 2 * i + 1 < text.size(); ++i) {
    const int high = digit_of(text[2 * i + 1]), low = digit_of(text[2 * i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return Color{bytes[0], bytes[1], bytes[2], bytes[3]};
}

Ink ink_of(Color color, const ColorForm& form) {
  switch (form.pixel) {
    case Pixel::gray8: {
      const uint32_t luma = (9798u * color.r + 19235u * color.g + 3735u * color.b + (1u << 14)) >> 15;
      return {{static_cast<uint8_t>(luma)}, 1, color.a};
    }
    case Pixel::bgr8: return {{color.b, color.g, color.r}, 3, color.a};
    case Pixel::rgba8: return {{color.r, color.g, color.b, 255}, 4, color.a};
    case Pixel::bgra8: return {{color.b, color.g, color.r, 255}, 4, color.a};
    case Pixel::nv12:
    case Pixel::i420:
    case Pixel::p010: {
      const uint32_t bits = form.pixel == Pixel::p010 ? 10 : 8;
      const gpu::ColorMatrix matrix = gpu::color_matrix(form.color, form.range, bits);
      const auto upper = [bits](int32_t number) { return static_cast<uint16_t>(number << (16 - bits)); };
      return {{},
              0,
              color.a,
              {0, upper(gpu::luma_of(matrix, color.r, color.g, color.b)),
               upper(gpu::cb_of(matrix, 4 * color.r, 4 * color.g, 4 * color.b)),
               upper(gpu::cr_of(matrix, 4 * color.r, 4 * color.g, 4 * color.b))}};
    }
    default: return {{color.r, color.g, color.b}, 3, color.a};
  }
}

std::array<Rectangle, 4> frame_parts(const Rectangle& area, int64_t thickness) {
  const int64_t height = area.bottom - area.top, width = area.right - area.left;
  if (height <= 0 || width <= 0) return {};
  if (2 * thickness >= std::min(height, width)) return {area};
  const int64_t inner_top = area.top + thickness, inner_bottom = area.bottom - thickness;
  return {{{area.left, area.top, area.right, inner_top},
           {area.left, inner_bottom, area.right, area.bottom},
           {area.left, inner_top, area.left + thickness, inner_bottom},
           {area.right - thickness, inner_top, area.right, inner_bottom}}};
}

void fill_rectangle(const ImageSpan& picture, Rectangle area, const Ink& ink) {
  const auto left = static_cast<uint32_t>(std::clamp<int64_t>(area.left, 0, picture.width()));
  const auto right = static_cast<uint32_t>(std::clamp<int64_t>(area.right, 0, picture.width()));
  const auto top = static_cast<uint32_t>(std::clamp<int64_t>(area.top, 0, picture.height()));
  const auto bottom = static_cast<uint32_t>(std::clamp<int64_t>(area.bottom, 0, picture.height()));
  for (uint32_t y = top; y < bottom; ++y) {
    uint8_t* pixel = picture.row(y) + size_t{left} * ink.channel_count;
    for (uint32_t x = left; x < right; ++x, pixel += ink.channel_count) blend(pixel, ink, 255);
  }
}

void draw_frame(const ImageSpan& picture, Rectangle area, int64_t thickness, const Ink& ink) {
  for (const Rectangle& part : frame_parts(area, thickness)) fill_rectangle(picture, part, ink);
}

} // namespace millrace::handlers
