// Letters as kernels draw them: their masks, packed in device memory, and the list of glyphs that makes up a line of
// text.
//
// Rule. Uses the same whole numbers as GlyphSet::draw() and Caption::line(), so the bytes are equal.
#pragma once

#include <millrace/abi.h>

#include <cstdint>
#include <cstring>

#include "handlers/gpu/both.h"
#include "handlers/gpu/rounded_product.h"

namespace millrace::handlers::draw {

struct SheetGlyph {
  int32_t left, top; // the mask's offset from pen and baseline; top is upwards
  uint32_t width, height;
  int32_t advance;
  uint32_t mask; // index of its first byte among the masks
};

// The pointers are valid where the sheet is read: on the host or on the device.
struct GlyphSheet {
  const SheetGlyph* glyphs;
  const uint8_t* masks;
};

// The coverage, 0…255, of the pixel at x, y by a glyph that is drawn at this pen and baseline.
MR_BOTH inline uint32_t coverage_at(const GlyphSheet& sheet, uint32_t glyph, int32_t pen, int32_t baseline, int32_t x,
                                    int32_t y) {
  const SheetGlyph& shape = sheet.glyphs[glyph];
  const auto column = static_cast<uint32_t>(x - pen - shape.left); // wraps to a huge number if negative
  const auto row = static_cast<uint32_t>(y - baseline + shape.top);
  if (column >= shape.width || row >= shape.height) return 0;
  return sheet.masks[shape.mask + row * shape.width + column];
}

// ---- lines that change from tick to tick --------------------------------------------------------------------------

// A line is a list of glyph indices of a sheet. These values stand for numbers instead: the tick's index and time, and
// from kFirstValuePlace on the numbers of records.
inline constexpr uint16_t kIndexPlace = 0xffff, kTimePlace = 0xfffe, kFirstValuePlace = 0xff00;
inline constexpr uint32_t kValuePlacesMax = 16; // in a line
inline constexpr uint32_t kLineSourcesMax = 2;  // inputs that records come from
// A sheet with such places begins with the glyphs of kNumberGlyphs.
inline constexpr uint16_t kGlyphOfColon = 10, kGlyphOfPoint = 11, kGlyphOfMinus = 12;
inline constexpr char kNumberGlyphs[] = "0123456789:.-";

// The longest line of a caption of 512 bytes: 85 places of at most 24 glyphs.
inline constexpr uint32_t kLineGlyphsMax = 2048;

enum class ValueForm : uint8_t { count, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64 };

// A number of a tick's records: how many there are, or a field of the first.
struct ValuePlace {
  ValueForm form;
  uint8_t source; // index into the line's records
  uint16_t reserved;
  uint32_t offset; // the field's place, in bytes from the record's first
};
// The records of one input on a tick; `value` is null if the input has no value.
struct LineRecords {
  const mr_value* value;
  const uint8_t* data;
};
// The source of a line; its pointers are valid where the line is filled in: on the host or on the device.
struct LineText {
  const uint16_t* caption;
  uint32_t caption_count;
  const ValuePlace* values;
  const LineRecords* records;
};

template <class T>
MR_BOTH T loaded(const uint8_t* bytes) {
  T number;
  memcpy(&number, bytes, sizeof number);
  return number;
}

// Writes glyphs one after another and drops those that do not fit.
struct LineWriter {
  uint16_t* line;
  uint32_t count = 0;

  MR_BOTH void put(uint32_t glyph) {
    if (count < kLineGlyphsMax) line[count++] = static_cast<uint16_t>(glyph);
  }
  // Writes at least `digits_min` digits.
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
  MR_BOTH void put_integer(int64_t number) {
    if (number < 0) put(kGlyphOfMinus);
    put_number(number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number), 1);
  }
  // Rounds to two decimals. NaN, and a value too large for a double to be exact, become a dash.
  MR_BOTH void put_decimal(double number) {
    const double size = number < 0 ? -number : number;
    if (!(size < 1e15)) return put(kGlyphOfMinus);
    auto whole = static_cast<uint64_t>(size);
    const double hundredths = gpu::rounded_product(size - static_cast<double>(whole), 100.0);
    auto part = static_cast<uint64_t>(hundredths + 0.5);
    if (part == 100) ++whole, part = 0;
    if (number < 0 && whole + part > 0) put(kGlyphOfMinus);
    put_number(whole, 1);
    put(kGlyphOfPoint);
    put_number(part, 2);
  }
  // Writes a dash if there is nothing to show.
  MR_BOTH void put_value(const ValuePlace& place, const LineRecords& records) {
    if (!records.value) return put(kGlyphOfMinus);
    const uint64_t there = records.value->as.records.count;
    if (place.form == ValueForm::count) return put_number(there, 1);
    if (there == 0) return put(kGlyphOfMinus);
    const uint8_t* const bytes = records.data + place.offset;
    switch (place.form) {
      case ValueForm::i8: return put_integer(loaded<int8_t>(bytes));
      case ValueForm::i16: return put_integer(loaded<int16_t>(bytes));
      case ValueForm::i32: return put_integer(loaded<int32_t>(bytes));
      case ValueForm::i64: return put_integer(loaded<int64_t>(bytes));
      case ValueForm::u8: return put_number(loaded<uint8_t>(bytes), 1);
      case ValueForm::u16: return put_number(loaded<uint16_t>(bytes), 1);
      case ValueForm::u32: return put_number(loaded<uint32_t>(bytes), 1);
      case ValueForm::u64: return put_number(loaded<uint64_t>(bytes), 1);
      case ValueForm::f32: return put_decimal(static_cast<double>(loaded<float>(bytes)));
      default: return put_decimal(loaded<double>(bytes));
    }
  }
};

// Writes the glyphs of a tick's line to `line`, which has room for kLineGlyphsMax. Returns their number.
MR_BOTH inline uint32_t fill_line(const LineText& text, uint64_t index, int64_t media_time_ns, uint16_t* line) {
  LineWriter writer{line};
  for (uint32_t i = 0; i < text.caption_count; ++i) {
    const uint16_t one = text.caption[i];
    if (one == kIndexPlace) {
      writer.put_number(index, 1);
    } else if (one == kTimePlace) {
      writer.put_time(media_time_ns);
    } else if (one >= kFirstValuePlace) {
      const ValuePlace& place = text.values[one - kFirstValuePlace];
      writer.put_value(place, text.records[place.source]);
    } else {
      writer.put(one);
    }
  }
  return writer.count;
}

} // namespace millrace::handlers::draw
