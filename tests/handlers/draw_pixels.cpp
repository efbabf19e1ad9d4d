// Pixels as kernels paint them, against those that draw.boxes and draw.text paint on the CPU.
#include <doctest/doctest.h>

#include <random>

#include "builtin.h"
#include "handlers/draw/box_style.h"
#include "pictures.h"
#include "scratch.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

std::vector<Box> boxes_in_disorder() {
  std::mt19937 random(4);
  const auto any = [&](int from, int to) {
    return static_cast<float>(from + int(random() % uint32_t(4 * (to - from))) / 4.0);
  };
  std::vector<Box> boxes = {{0, 0, 0, 10}, {2e6f, 0, 3, 3}, {10, 10, 0.2f, 0.2f, 1, 0, 77}};
  for (int i = 0; i < 30; ++i)
    boxes.push_back({any(-20, 90), any(-20, 60), any(1, 50), any(1, 40), 1, int(random() % 20) - 1,
                     i % 3 == 0 ? -1 : int64_t(random()) << (i % 31)});
  return boxes;
}

} // namespace

TEST_CASE("the marks of boxes, the last one first, are what draw.boxes paints") {
  const std::vector<Box> boxes = boxes_in_disorder(); // of classes up to 18
  const ScratchFolder folder;
  const std::string names_file = folder.write("names.txt", "cat\nDäckel\n\nÆ 4\n");
  for (Pixel pixel : kInterleaved)
    for (const bool has_names : {false, true}) {
      const char* const thickness = has_names ? "1" : "4";
      const std::string file = has_names ? names_file : "";
      const std::vector<std::string> names =
          has_names ? std::vector<std::string>{"cat", "Däckel", "", "Æ 4"} : std::vector<std::string>{};
      const Value picture = noise(pixel, 97, 61, 3);
      TableTest draw(builtin("draw.boxes"), {{"thickness", thickness}, {"size", "11"}, {"classes", file}});
      draw.input("video", picture);
      draw.input("boxes", testing::records<Box>(boxes));
      const Result result = draw.tick();
      REQUIRE(result.ok());

      const GlyphSet glyphs("", 11, "äÆ");
      const PackedSheet sheet(glyphs, draw::kBoxGlyphs, names);
      const draw::BoxStyle style =
          box_style({std::stol(thickness), 11, true}, pixel, glyphs, sheet, sheet.bytes().data(), names.size());
      const ImageSpan made = picture.image();
      for (int32_t y = 0; y < 61; ++y)
        for (int32_t x = 0; x < 97; ++x)
          for (size_t i = boxes.size(); i-- > 0;) {
            if (!draw::drawable(boxes[i])) continue;
            const draw::BoxMark mark = draw::mark_of(boxes[i], style);
            uint8_t* at = made.row(uint32_t(y)) + uint32_t(x) * bytes_per_pixel(pixel);
            if (!draw::paint_mark(mark, style, x, y, at)) continue;
            REQUIRE(draw::touches(mark, {x, y, x + 1, y + 1}));
            break;
          }
      CHECK(same_pixels(made, result.image("video")));
    }
}

TEST_CASE("a packed caption is the line that draw.text writes, whatever index and time are") {
  const std::string text = "ä{index} at {time}: {{f}?";
  const Caption caption(text);
  const GlyphSet glyphs("", 20, text);
  const PackedSheet packed(glyphs, caption);
  const draw::GlyphSheet sheet = packed.sheet(packed.bytes().data());
  for (const auto& [index, time] :
       {std::pair<uint64_t, int64_t>{0, 0}, {9, 61'001'000'000}, {10, -3'723'004'999'999}, {~uint64_t{0}, INT64_MAX}}) {
    std::vector<uint16_t> line(draw::kLineGlyphsMax);
    line.resize(draw::fill_line({packed.caption(packed.bytes().data()), packed.caption_count(), nullptr, nullptr},
                                index, time, line.data()));
    Caption words(text);
    const std::string_view wanted = words.line(index, time);
    int64_t width = 0;
    for (uint16_t glyph : line) width += sheet.glyphs[glyph].advance;
    CHECK(width == glyphs.width(wanted));

    Picture by_cpu(Pixel::gray8, 600, 40), by_pixel(Pixel::gray8, 600, 40);
    const Ink ink = ink_of({200, 100, 50, 180}, Pixel::gray8);
    glyphs.draw(by_cpu.span(), wanted, -3, 25, ink);
    int32_t pen = -3;
    for (uint16_t glyph : line) {
      for (int32_t y = 25 - packed.top(); y < 25 + packed.bottom(); ++y)
        for (int32_t x = 0; x < 600; ++x) {
          const uint32_t coverage = draw::coverage_at(sheet, glyph, pen, 25, x, y);
          if (coverage > 0 && y >= 0 && y < 40) blend(by_pixel.span().row(uint32_t(y)) + x, ink, coverage);
        }
      pen += sheet.glyphs[glyph].advance;
    }
    CHECK(same_pixels(by_cpu.view(), by_pixel.view()));
  }
}

TEST_CASE("the longest caption has room in a line") {
  std::string text;
  while (text.size() + 6 <= Caption::kTextMax) text += "{time}";
  const GlyphSet glyphs("", 8);
  const PackedSheet packed(glyphs, Caption(text));
  std::vector<uint16_t> line(draw::kLineGlyphsMax);
  const uint32_t count = draw::fill_line(
      {packed.caption(packed.bytes().data()), packed.caption_count(), nullptr, nullptr}, 0, INT64_MIN + 1, line.data());
  CHECK(count <= draw::kLineGlyphsMax);
  CHECK(count == Caption(text).line(0, INT64_MIN + 1).size());
}
