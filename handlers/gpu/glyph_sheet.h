// Letters as kernels draw them: masks behind each other in device memory, and which of them a line of text is made of.
//
// Rule. The same whole numbers as GlyphSet::draw() and Caption::line(), so the bytes are equal.
#pragma once

#include <cstdint>

#include "handlers/gpu/both.h"

namespace millrace::handlers::gpu {

struct SheetGlyph {
  int32_t left, top; // of the mask, from pen and baseline; top is upwards
  uint32_t width, height;
  int32_t advance;
  uint32_t mask; // its first byte among the masks
};

// In the memory of whoever looks at it.
struct GlyphSheet {
  const SheetGlyph* glyphs;
  const uint8_t* masks;
};

// How much of the pixel at x, y a glyph covers, 0…255, whose pen and baseline are there.
MR_BOTH inline uint32_t coverage_at(const GlyphSheet& sheet, uint32_t glyph, int32_t pen, int32_t baseline, int32_t x,
                                    int32_t y) {
  const SheetGlyph& shape = sheet.glyphs[glyph];
  const auto column = static_cast<uint32_t>(x - pen - shape.left); // huge where it would be negative
  const auto row = static_cast<uint32_t>(y - baseline + shape.top);
  if (column >= shape.width || row >= shape.height) return 0;
  return sheet.masks[shape.mask + row * shape.width + column];
}

// ---- lines that change from tick to tick --------------------------------------------------------------------------

// A line is a list of glyphs of a sheet, with these in the places of numbers.
inline constexpr uint16_t kIndexPlace = 0xffff, kTimePlace = 0xfffe;
// The first glyphs of a sheet that has such places.
inline constexpr uint16_t kGlyphOfColon = 10, kGlyphOfPoint = 11, kGlyphOfMinus = 12;
inline constexpr char kNumberGlyphs[] = "0123456789:.-";

// What a caption of 512 bytes may grow to: 85 places of at most 24 glyphs.
inline constexpr uint32_t kLineGlyphsMax = 2048;

// Writes glyphs one after another and stops where there is no room.
struct LineWriter {
  uint16_t* line;
  uint32_t count = 0;

  MR_BOTH void put(uint32_t glyph) {
    if (count < kLineGlyphsMax) line[count++] = static_cast<uint16_t>(glyph);
  }
  // At least so many digits.
  MR_BOTH void put_number(uint64_t number, uint32_t digits_min) {
    uint64_t unit = 1;
    for (uint32_t digits = 1; digits < digits_min || number / unit >= 10; ++digits) unit *= 10;
    for (; unit > 0; unit /= 10) put(static_cast<uint32_t>(number / unit % 10));
  }
  MR_BOTH void put_time(int64_t media_time_ns) {
    const int64_t ms = media_time_ns / 1'000'000;
    if (ms < 0) put(kGlyphOfMinus);
    const auto positive = static_cast<uint64_t>(ms < 0 ? -ms : ms);
    put_number(positive / 3'600'000, 1);
    put(kGlyphOfColon);
    put_number(positive / 60'000 % 60, 2);
    put(kGlyphOfColon);
    put_number(positive / 1000 % 60, 2);
    put(kGlyphOfPoint);
    put_number(positive % 1000, 3);
  }
};

// The glyphs of a tick's line, into `line`, which has room for kLineGlyphsMax. Returns how many.
MR_BOTH inline uint32_t fill_line(const uint16_t* caption, uint32_t caption_count, uint64_t index,
                                  int64_t media_time_ns, uint16_t* line) {
  LineWriter writer{line};
  for (uint32_t i = 0; i < caption_count; ++i) {
    if (caption[i] == kIndexPlace)
      writer.put_number(index, 1);
    else if (caption[i] == kTimePlace)
      writer.put_time(media_time_ns);
    else
      writer.put(caption[i]);
  }
  return writer.count;
}

} // namespace millrace::handlers::gpu
