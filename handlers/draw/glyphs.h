// Letters as coverage masks: rendered once with FreeType, then only blended into pictures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "handlers/draw/raster.h"

namespace millrace::handlers {

// The code points of UTF-8 text, one after another; U+FFFD where the bytes are not UTF-8.
// `text` loses the bytes that were read; it must not be empty.
uint32_t next_code_point(std::string_view& text);

// Where DejaVu Sans is on this machine, in the folders that systems put fonts; "" where it is not.
std::string find_default_font();

// The glyphs of one font in one size. Immutable once made; drawing allocates nothing.
class GlyphSet {
 public:
  GlyphSet() = default;
  // Renders printable ASCII and every code point of `extra`. `font`: a file, or "" for the default; `size`: of the em,
  // in pixels. Throws std::runtime_error with file, reason and remedy.
  GlyphSet(const std::string& font, uint32_t size, std::string_view extra = {});

  // The same letters, each as wide as all that is at most `radius` pixels from it: what is drawn under them as an
  // outline. The pen moves as far.
  GlyphSet outlined(uint32_t radius) const;

  // From the baseline: how far the tallest letters go up and the lowest down, in pixels, both positive.
  int32_t ascent() const { return ascent_; }
  int32_t descent() const { return descent_; }
  // How far the pen moves; pixels. Code points that were not rendered count as '?'.
  int64_t width(std::string_view text) const;
  // Draws one line, its baseline at `y`, the pen starting at `x`. Clipped to the picture.
  void draw(const ImageSpan& picture, std::string_view text, int64_t x, int64_t y, const Ink& ink) const;

  struct Glyph {
    uint32_t code_point = 0;
    int32_t left = 0, top = 0; // of the mask, from pen and baseline; top is upwards
    uint32_t width = 0, height = 0;
    int32_t advance = 0;
    size_t mask = 0; // its first byte in masks()
  };
  // What stands for a code point, '?' where it was not rendered; null where there is nothing to draw.
  const Glyph* find(uint32_t code_point) const;
  const std::vector<uint8_t>& masks() const { return masks_; }

 private:
  void render(void* face, uint32_t code_point); // an FT_Face

  std::vector<Glyph> glyphs_; // sorted by code point
  std::vector<uint8_t> masks_;
  int32_t ascent_ = 0, descent_ = 0;
};

} // namespace millrace::handlers
