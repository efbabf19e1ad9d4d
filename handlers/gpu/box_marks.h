// Computes the pixels that draw.boxes paints: the frame and the label of one box, pixel by pixel.
//
// Rule. Frames, plates and letters are opaque, so if several marks cover a pixel, the last one counts. The arithmetic
// uses whole numbers only, so CPU and GPU paint the same bytes.
#pragma once

#include <millrace/payload.h>

#include <cmath>
#include <cstdint>

#include "handlers/draw/raster.h"
#include "handlers/gpu/both.h"
#include "handlers/gpu/glyph_sheet.h"
#include "handlers/gpu/inked_pixel.h"

namespace millrace::handlers::draw {

// Twelve hues that are easy to tell apart on a screen and from most pictures.
inline constexpr uint32_t kBoxColors = 12;
MR_BOTH constexpr Color box_color(uint64_t number) {
  constexpr Color kPalette[kBoxColors] = {{230, 25, 75},  {60, 180, 75},   {255, 225, 25}, {0, 130, 200},
                                          {245, 130, 48}, {145, 30, 180},  {70, 240, 240}, {240, 50, 230},
                                          {210, 245, 60}, {250, 190, 212}, {0, 128, 128},  {220, 190, 255}};
  return kPalette[number % kBoxColors];
}

// The index of a box's colour, from the id of its track or else from its class.
MR_BOTH inline uint32_t color_index(const Box& box) {
  const uint64_t key = box.id >= 0      ? static_cast<uint64_t>(box.id)
                       : box.label >= 0 ? static_cast<uint64_t>(box.label)
                                        : 0;
  return static_cast<uint32_t>(key % kBoxColors);
}

// A box beyond any picture, or with NaN in it, is another handler's mistake. It is skipped and not treated as a
// failure.
inline constexpr float kBoxPlaceMax = 1e6f;
MR_BOTH inline bool drawable(const Box& box) {
  const auto sane = [](float value) { return fabsf(value) <= kBoxPlaceMax; }; // false for NaN
  return sane(box.x) && sane(box.y) && sane(box.width) && sane(box.height) && box.width > 0 && box.height > 0;
}

// The sheet has the glyphs of these first, then those of classes' names: glyph d is the digit d.
inline constexpr char kBoxGlyphs[] = "0123456789 ";
inline constexpr uint32_t kGlyphOfSpace = 10;

// How boxes are drawn; kernels take it by value.
struct BoxStyle {
  Ink plates[kBoxColors], letters[kBoxColors];
  int32_t thickness, padding;
  int32_t ascent, descent;
  bool labels;
  GlyphSheet glyphs;
  // Names of classes, as lists of glyphs: that of class c is names[names[c]] to names[names[c + 1] - 1].
  const uint16_t* names;
  uint32_t name_count;
};

// Pixels left … right − 1, top … bottom − 1.
struct PixelArea {
  int32_t left, top, right, bottom;
  MR_BOTH bool holds(int32_t x, int32_t y) const { return x >= left && x < right && y >= top && y < bottom; }
  MR_BOTH bool meets(const PixelArea& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  MR_BOTH bool within(const PixelArea& other) const {
    return left >= other.left && right <= other.right && top >= other.top && bottom <= other.bottom;
  }
};

struct BoxMark {
  PixelArea frame, hole, label; // the hole and the label may be empty
  uint32_t color;
  int32_t name; // the class whose name the label begins with; -1: none
  int64_t id;   // -1: none
};

MR_BOTH inline int32_t rounded(float value) { return static_cast<int32_t>(lroundf(value)); }

// The power of ten of the id's first digit, which tells how many digits the id has.
MR_BOTH inline uint64_t first_unit(int64_t id) {
  uint64_t unit = 1;
  while (static_cast<uint64_t>(id) / unit >= 10) unit *= 10;
  return unit;
}

// True if the label of a box has letters: the name of its class, its id, or both.
MR_BOTH inline bool has_label(const BoxMark& mark) { return mark.name >= 0 || mark.id >= 0; }

// Calls `use(glyph)` with each glyph of the label: the name, a space, the id.
template <class Use>
MR_BOTH void each_glyph(const BoxMark& mark, const BoxStyle& style, Use&& use) {
  if (mark.name >= 0)
    for (uint32_t i = style.names[mark.name]; i < style.names[mark.name + 1]; ++i) use(uint32_t{style.names[i]});
  if (mark.name >= 0 && mark.id >= 0) use(kGlyphOfSpace);
  if (mark.id < 0) return;
  for (uint64_t unit = first_unit(mark.id); unit > 0; unit /= 10)
    use(static_cast<uint32_t>(static_cast<uint64_t>(mark.id) / unit % 10));
}

// Computes the mark of a drawable box. The label is a plate on top of the frame, or inside the frame if there is no
// room above it in the picture.
MR_BOTH inline BoxMark mark_of(const Box& box, const BoxStyle& style) {
  BoxMark mark{};
  mark.frame = {rounded(box.x), rounded(box.y), rounded(box.x + box.width), rounded(box.y + box.height)};
  mark.color = color_index(box);
  mark.id = box.id >= 0 ? box.id : -1;
  const bool is_named = box.label >= 0 && static_cast<uint32_t>(box.label) < style.name_count &&
                        style.names[box.label] < style.names[box.label + 1];
  mark.name = is_named ? box.label : -1;
  const int32_t width = mark.frame.right - mark.frame.left, height = mark.frame.bottom - mark.frame.top;
  if (2 * style.thickness < (width < height ? width : height))
    mark.hole = {mark.frame.left + style.thickness, mark.frame.top + style.thickness,
                 mark.frame.right - style.thickness, mark.frame.bottom - style.thickness};
  if (style.labels && has_label(mark)) {
    int32_t length = 2 * style.padding;
    each_glyph(mark, style, [&](uint32_t glyph) { length += style.glyphs.glyphs[glyph].advance; });
    const int32_t tall = style.ascent + style.descent;
    const int32_t top = mark.frame.top >= tall ? mark.frame.top - tall : mark.frame.top;
    mark.label = {mark.frame.left, top, mark.frame.left + length, top + tall};
  }
  return mark;
}

// True if any pixel of the tile may be painted.
MR_BOTH inline bool touches(const BoxMark& mark, const PixelArea& tile) {
  return mark.label.meets(tile) || (mark.frame.meets(tile) && !tile.within(mark.hole));
}

MR_BOTH inline bool covers(const BoxMark& mark, int32_t x, int32_t y) {
  return mark.label.holds(x, y) || (mark.frame.holds(x, y) && !mark.hole.holds(x, y));
}

// Calls `use(coverage)` for each letter of the label that covers a part of the pixel.
template <class Use>
MR_BOTH void each_coverage(const BoxMark& mark, const BoxStyle& style, int32_t x, int32_t y, Use&& use) {
  if (!mark.label.holds(x, y)) return;
  int32_t pen = mark.label.left + style.padding;
  each_glyph(mark, style, [&](uint32_t glyph) {
    const uint32_t coverage = coverage_at(style.glyphs, glyph, pen, mark.label.top + style.ascent, x, y);
    if (coverage > 0) use(coverage);
    pen += style.glyphs.glyphs[glyph].advance;
  });
}

// Paints one pixel, of interleaved channels or of ink; false if the box does not cover it.
MR_BOTH inline bool paint_mark(const BoxMark& mark, const BoxStyle& style, int32_t x, int32_t y, uint8_t* pixel) {
  if (!covers(mark, x, y)) return false;
  blend(pixel, style.plates[mark.color], 255);
  each_coverage(mark, style, x, y, [&](uint32_t coverage) { blend(pixel, style.letters[mark.color], coverage); });
  return true;
}
MR_BOTH inline bool paint_mark(const BoxMark& mark, const BoxStyle& style, int32_t x, int32_t y, InkedPixel& pixel) {
  if (!covers(mark, x, y)) return false;
  const Ink &plate = style.plates[mark.color], &letters = style.letters[mark.color];
  uint16_t share = 0;
  each_coverage(mark, style, x, y, [&](uint32_t coverage) {
    share = share_of_both(share, share_of(static_cast<uint8_t>(coverage), letters.alpha));
  });
  pixel.paint(plate, share_of(255, plate.alpha));
  pixel.paint(letters, share);
  return true;
}

} // namespace millrace::handlers::draw
