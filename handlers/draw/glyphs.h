// Letters as coverage masks: rendered once with FreeType, then only blended into pictures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "handlers/draw/raster.h"

namespace millrace::handlers {

// Takes the next code point off UTF-8 text; U+FFFD if the bytes are not UTF-8. `text` loses the bytes that were read;
// it must not be empty.
uint32_t next_code_point(std::string_view& text);

// The path of DejaVu Sans in the folders where systems keep fonts; "" if it is not installed.
std::string find_default_font();

// "'カ', 'メ'": the first letters of a text that is not empty, for a message.
std::string quoted_letters(std::string_view text);

// The glyphs of one font in one size. Immutable once made; drawing allocates nothing.
class GlyphSet {
 public:
  GlyphSet() = default;
  // Renders printable ASCII and every code point of `extra`. `font` is a file, or "" for the default; `size` is that of
  // the em in pixels. A letter of `extra` that the font lacks comes from another font of the machine, if one has it.
  // Throws std::runtime_error with file, reason and remedy.
  GlyphSet(const std::string& font, uint32_t size, std::string_view extra = {});

  // The same letters, each widened to all places within `radius` pixels of it, to be drawn under them as an outline.
  // Advances stay the same.
  GlyphSet outlined(uint32_t radius) const;

  // How far the tallest letters rise above the baseline and the lowest fall below it, in pixels; both positive.
  int32_t ascent() const { return ascent_; }
  int32_t descent() const { return descent_; }
  // How far any mask reaches above the baseline and below it, in pixels; 0 if none does. They may exceed the above: an
  // outline does, and letters of other fonts.
  int32_t rise() const { return rise_; }
  int32_t fall() const { return fall_; }
  // The text's width in pixels, as the sum of the advances. Code points that were not rendered count as '?'.
  int64_t width(std::string_view text) const;
  // Letters of `extra`, each once, that no font has, as UTF-8; they are drawn as the font's empty box.
  const std::string& missing() const { return missing_; }
  // Draws one line with its baseline at `y` and the pen starting at `x`, clipped to the picture and to `clip`.
  void draw(const ImageSpan& picture, std::string_view text, int64_t x, int64_t y, const Ink& ink,
            const Rectangle& clip = kEverywhere) const;

  // The part of a letter's mask that is seen, and its place.
  struct Stamp {
    const uint8_t* mask; // the first row's first byte
    size_t mask_stride;
    uint32_t left, top, width, height; // in the picture
  };
  // Calls `use(stamp)` for each letter of a line of which any part lies in `clip`, which lies in the picture.
  template <class Use>
  void each_stamp(std::string_view text, int64_t x, int64_t y, const Rectangle& clip, Use&& use) const;

  struct Glyph {
    uint32_t code_point = 0;
    int32_t left = 0, top = 0; // the mask's offset from pen and baseline; top is upwards
    uint32_t width = 0, height = 0;
    int32_t advance = 0;
    size_t mask = 0; // index of its first byte in masks()
  };
  // The glyph of a code point, or that of '?' if the code point was not rendered; null if '?' was not rendered either.
  const Glyph* find(uint32_t code_point) const;
  // kMaskSlack bytes, which belong to no glyph, follow the last mask: rows may be read in blocks.
  static constexpr size_t kMaskSlack = 8;
  const std::vector<uint8_t>& masks() const { return masks_; }

 private:
  void render(void* face, uint32_t code_point); // an FT_Face
  void finish();                                // call it once all glyphs are there

  void render_from_other_fonts(void* library, uint32_t size, std::vector<uint32_t>& lacking); // an FT_Library

  std::string missing_;
  std::vector<Glyph> glyphs_; // sorted by code point
  std::vector<uint8_t> masks_;
  int32_t ascent_ = 0, descent_ = 0, rise_ = 0, fall_ = 0;
};

template <class Use>
void GlyphSet::each_stamp(std::string_view text, int64_t x, int64_t y, const Rectangle& clip, Use&& use) const {
  while (!text.empty()) {
    const Glyph* glyph = find(next_code_point(text));
    if (!glyph) continue;
    const int64_t left = x + glyph->left, top = y - glyph->top;
    const Rectangle seen = common_part({left, top, left + glyph->width, top + glyph->height}, clip);
    if (seen.left < seen.right && seen.top < seen.bottom)
      use(Stamp{masks_.data() + glyph->mask + static_cast<size_t>(seen.top - top) * glyph->width +
                    static_cast<size_t>(seen.left - left),
                glyph->width, static_cast<uint32_t>(seen.left), static_cast<uint32_t>(seen.top),
                static_cast<uint32_t>(seen.right - seen.left), static_cast<uint32_t>(seen.bottom - seen.top)});
    x += glyph->advance;
  }
}

} // namespace millrace::handlers
