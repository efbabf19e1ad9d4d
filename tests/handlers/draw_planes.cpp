// Drawing on nv12, i420 and p010 against its definition: doubles on a picture of full chroma, which is averaged then.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "builtin.h"
#include "handlers/draw/box_style.h"
#include "handlers/draw/glyphs.h"
#include "handlers/gpu/color_math.h"
#include "handlers/image/color.h"
#include "handlers/image/planes.h"
#include "ink.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

constexpr std::array<Pixel, 3> kHalvingChroma = {Pixel::nv12, Pixel::i420, Pixel::p010};

struct Tag {
  uint32_t color, range;
};
constexpr std::array<Tag, 6> kTags = {{{MR_COLOR_BT601, MR_RANGE_LIMITED},
                                       {MR_COLOR_BT601, MR_RANGE_FULL},
                                       {MR_COLOR_BT709, MR_RANGE_LIMITED},
                                       {MR_COLOR_BT709, MR_RANGE_FULL},
                                       {MR_COLOR_BT2020, MR_RANGE_LIMITED},
                                       {MR_COLOR_BT2020, MR_RANGE_FULL}}};

// A number of the picture: Y, Cb or Cr (0 to 2) of a column and row of its plane, in steps of 8 or 10 bits.
double number(const ImageView& picture, uint32_t which, uint32_t x, uint32_t y) {
  const uint32_t plane = std::min(which, picture.plane_count() - 1);
  const Plane<const uint8_t> at = plane_of(picture, plane);
  const uint8_t* const sample = at.row(y) + size_t{x} * at.sample_bytes() + (which - plane) * at.channel_bytes;
  return at.channel_bytes == 1 ? sample[0] : (sample[0] + 256 * sample[1]) >> 6;
}

// A picture of full chroma in doubles.
class Deep {
 public:
  explicit Deep(const ImageView& picture)
      : width_(picture.width()), height_(picture.height()), numbers_(size_t{3} * width_ * height_) {
    matrix_ = gpu::color_matrix(picture.value().as.image);
    for (uint32_t which = 0; which < 3; ++which)
      for (uint32_t y = 0; y < height_; ++y)
        for (uint32_t x = 0; x < width_; ++x)
          at(which, x, y) = which == 0 ? number(picture, 0, x, y) : number(picture, which, x / 2, y / 2);
  }

  void blend(int64_t x, int64_t y, Color color, double coverage) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
    const double share = coverage * color.a / 255;
    const std::array<int32_t, 3> ink = {gpu::luma_of(matrix_, color.r, color.g, color.b),
                                        gpu::cb_of(matrix_, 4 * color.r, 4 * color.g, 4 * color.b),
                                        gpu::cr_of(matrix_, 4 * color.r, 4 * color.g, 4 * color.b)};
    for (uint32_t which = 0; which < 3; ++which) {
      double& value = at(which, static_cast<uint32_t>(x), static_cast<uint32_t>(y));
      value += (ink[which] - value) * share;
    }
  }
  void fill(const Rectangle& area, Color color) {
    for (int64_t y = std::max<int64_t>(area.top, 0); y < std::min<int64_t>(area.bottom, height_); ++y)
      for (int64_t x = std::max<int64_t>(area.left, 0); x < std::min<int64_t>(area.right, width_); ++x)
        blend(x, y, color, 1);
  }
  void write(const GlyphSet& glyphs, std::string_view text, int64_t x, int64_t y, Color color,
             const Rectangle& clip = kEverywhere) {
    while (!text.empty()) {
      const GlyphSet::Glyph& glyph = *glyphs.find(next_code_point(text));
      for (uint32_t v = 0; v < glyph.height; ++v)
        for (uint32_t u = 0; u < glyph.width; ++u) {
          const int64_t column = x + glyph.left + u, row = y - glyph.top + v;
          if (column < clip.left || column >= clip.right || row < clip.top || row >= clip.bottom) continue;
          blend(column, row, color, glyphs.masks()[glyph.mask + size_t{v} * glyph.width + u] / 255.0);
        }
      x += glyph.advance;
    }
  }

  // The largest error of the picture, in steps of its numbers.
  double error(const ImageView& picture) const {
    double worst = 0;
    for (uint32_t which = 0; which < 3; ++which)
      for (uint32_t y = 0; y < plane_extent(picture.pixel(), height_, which); ++y)
        for (uint32_t x = 0; x < plane_extent(picture.pixel(), width_, which); ++x)
          worst = std::max(worst, std::abs(number(picture, which, x, y) - wanted(which, x, y)));
    return worst;
  }

 private:
  double& at(uint32_t which, uint32_t x, uint32_t y) { return numbers_[(size_t{which} * height_ + y) * width_ + x]; }
  double at(uint32_t which, uint32_t x, uint32_t y) const {
    return numbers_[(size_t{which} * height_ + y) * width_ + x];
  }
  double wanted(uint32_t which, uint32_t x, uint32_t y) const {
    if (which == 0) return at(0, x, y);
    double sum = 0, count = 0;
    for (uint32_t v = 2 * y; v < std::min(2 * y + 2, height_); ++v)
      for (uint32_t u = 2 * x; u < std::min(2 * x + 2, width_); ++u) sum += at(which, u, v), ++count;
    return sum / count;
  }

  uint32_t width_, height_;
  gpu::ColorMatrix matrix_;
  std::vector<double> numbers_;
};

Value tagged_noise(Pixel pixel, uint32_t width, uint32_t height, uint32_t seed, Tag tag) {
  Value value = noise(pixel, width, height, seed);
  value.raw().as.image.color = tag.color;
  value.raw().as.image.range = tag.range;
  return value;
}

std::string as_text(Color color) {
  char text[16];
  std::snprintf(text, sizeof text, "#%02x%02x%02x%02x", color.r, color.g, color.b, color.a);
  return text;
}

// In steps of the picture's own numbers, also of ten bits: a half for the last rounding, and the rest for the marks.
constexpr double kErrorMost = 0.6;

} // namespace

TEST_CASE("a line of text, its box and its outline are drawn on planes as on full chroma that is averaged then" *
          doctest::skip(!has_font())) {
  std::mt19937 random(50);
  const auto any = [&](int from, int to) {
    return from + static_cast<int>(random() % static_cast<uint32_t>(to - from + 1));
  };
  const auto any_color = [&] {
    const int alpha = any(0, 3);
    return Color{static_cast<uint8_t>(any(0, 255)), static_cast<uint8_t>(any(0, 255)),
                 static_cast<uint8_t>(any(0, 255)), static_cast<uint8_t>(alpha == 0 ? 255 : any(0, 255))};
  };
  const std::vector<std::string> texts = {"W", "fj.", "Ag{{1}y", "WAVE", "ii"};
  for (int round = 0; round < 400; ++round) {
    const Pixel pixel = kHalvingChroma[static_cast<size_t>(round % 3)];
    const Tag tag = kTags[static_cast<size_t>(any(0, 5))];
    const auto width = static_cast<uint32_t>(round < 30 ? any(1, 5) : any(1, 130));
    const auto height = static_cast<uint32_t>(round < 30 ? any(1, 5) : any(1, 70));
    const int x = any(-60, 60), y = any(-40, 40), size = any(4, 40), padding = any(0, 9), reach = any(1, 6);
    const bool boxed = any(0, 1) > 0, outlined = any(0, 1) > 0;
    const Color ink = any_color(), box = any_color(), outline = any_color();
    const std::string text = texts[static_cast<size_t>(any(0, 4))];
    INFO("round " << round << ": " << name_of(pixel) << " " << width << "x" << height << ", text=" << text << " x=" << x
                  << " y=" << y << " size=" << size << " padding=" << padding << " outline_width=" << reach
                  << " color=" << as_text(ink) << " box=" << (boxed ? as_text(box) : "")
                  << " outline=" << (outlined ? as_text(outline) : ""));
    const Value picture = tagged_noise(pixel, width, height, static_cast<uint32_t>(round), tag);
    TableTest draw(builtin("draw.text"), {{"text", text},
                                          {"x", std::to_string(x)},
                                          {"y", std::to_string(y)},
                                          {"size", std::to_string(size)},
                                          {"color", as_text(ink)},
                                          {"padding", std::to_string(padding)},
                                          {"box", boxed ? as_text(box) : ""},
                                          {"outline", outlined ? as_text(outline) : ""},
                                          {"outline_width", std::to_string(reach)}});
    draw.input("video", picture);
    const Result result = draw.tick();
    REQUIRE_MESSAGE(result.ok(), result.error);

    const std::string line = text == "Ag{{1}y" ? "Ag{1}y" : text;
    const GlyphSet glyphs("", static_cast<uint32_t>(size), line);
    const int64_t wide = glyphs.width(line), tall = glyphs.ascent() + glyphs.descent();
    const int64_t left = x >= 0 ? x : int64_t{width} + x - wide;
    const int64_t top = y >= 0 ? y : int64_t{height} + y - tall;
    Deep wanted(picture.image());
    if (boxed) wanted.fill({left - padding, top - padding, left + wide + padding, top + tall + padding}, box);
    if (outlined)
      wanted.write(glyphs.outlined(static_cast<uint32_t>(reach)), line, left, top + glyphs.ascent(), outline);
    wanted.write(glyphs, line, left, top + glyphs.ascent(), ink);
    CHECK(wanted.error(result.image("video")) <= kErrorMost);
  }
}

TEST_CASE("boxes and their labels are drawn on planes as on full chroma that is averaged then" *
          doctest::skip(!has_font())) {
  std::mt19937 random(51);
  const auto any = [&](int from, int to) {
    return from + static_cast<int>(random() % static_cast<uint32_t>(to - from + 1));
  };
  for (int round = 0; round < 150; ++round) {
    const Pixel pixel = kHalvingChroma[static_cast<size_t>(round % 3)];
    const auto width = static_cast<uint32_t>(round < 15 ? any(1, 5) : any(1, 130));
    const auto height = static_cast<uint32_t>(round < 15 ? any(1, 5) : any(1, 90));
    const int thickness = any(1, 7), size = any(4, 20);
    INFO("round " << round << ": " << name_of(pixel) << " " << width << "x" << height << ", thickness=" << thickness
                  << " size=" << size);
    std::vector<Box> boxes;
    for (int i = any(0, 12); i > 0; --i)
      boxes.push_back({static_cast<float>(any(-40, 400)) / 4, static_cast<float>(any(-40, 300)) / 4,
                       static_cast<float>(any(1, 200)) / 4, static_cast<float>(any(1, 200)) / 4, 1, 0, any(-1, 2000)});
    const Value picture = tagged_noise(pixel, width, height, static_cast<uint32_t>(round), kTags[size_t(any(0, 5))]);
    TableTest draw(builtin("draw.boxes"), {{"thickness", std::to_string(thickness)}, {"size", std::to_string(size)}});
    draw.input("video", picture);
    draw.input("boxes", testing::records<Box>(boxes));
    const Result result = draw.tick();
    REQUIRE_MESSAGE(result.ok(), result.error);

    const GlyphSet glyphs("", static_cast<uint32_t>(size));
    const PackedSheet sheet(glyphs, draw::kBoxGlyphs);
    const draw::BoxStyle style =
        box_style({thickness, size, true}, ColorForm(picture.image()), glyphs, sheet, sheet.bytes().data());
    Deep wanted(picture.image());
    for (const Box& box : boxes) {
      const draw::BoxMark mark = draw::mark_of(box, style);
      const Color plate = draw::box_color(mark.color);
      const auto rectangle = [](const draw::PixelArea& area) {
        return Rectangle{area.left, area.top, area.right, area.bottom};
      };
      for (const Rectangle& part : frame_parts(rectangle(mark.frame), thickness)) wanted.fill(part, plate);
      wanted.fill(rectangle(mark.label), plate);
      if (!draw::has_label(mark)) continue;
      const Color letters = 299 * plate.r + 587 * plate.g + 114 * plate.b > 140'000 ? Color{0, 0, 0} : kWhite;
      wanted.write(glyphs, std::to_string(box.id), mark.label.left + style.padding, mark.label.top + style.ascent,
                   letters, rectangle(mark.label));
    }
    CHECK(wanted.error(result.image("video")) <= kErrorMost);
  }
}

TEST_CASE("text changes no number outside what it covers, nor the bits below ten, nor the padding" *
          doctest::skip(!has_font())) {
  for (Pixel pixel : kHalvingChroma)
    for (const char* color : {"#ff0000", "#ff000000"}) {
      const Value picture = noise(pixel, 91, 67, 3);
      TableTest draw(builtin("draw.text"), {{"text", "i"}, {"x", "31"}, {"y", "21"}, {"size", "20"}, {"color", color}});
      draw.input("video", picture);
      const Result result = draw.tick();
      REQUIRE(result.ok());
      const GlyphSet glyphs("", 20);
      const GlyphSet::Glyph& glyph = *glyphs.find('i');
      const int64_t left = 31 + glyph.left, top = 21 + glyphs.ascent() - glyph.top;
      const ImageView from = picture.image(), to = result.image("video");
      uint32_t changed = 0;
      bool rest_is_same = true;
      for (uint32_t plane = 0; plane < from.plane_count(); ++plane)
        for (uint32_t y = 0; y < from.rows(plane); ++y)
          for (uint32_t x = 0; x < plane_extent(pixel, 91, plane); ++x) {
            const uint32_t bytes = sample_bytes(pixel, plane), scale = plane > 0 ? 2 : 1;
            const bool same = std::memcmp(from.row(y, plane) + x * bytes, to.row(y, plane) + x * bytes, bytes) == 0;
            const bool covered = (x + 1) * scale > left && x * scale < left + glyph.width && (y + 1) * scale > top &&
                                 y * scale < top + glyph.height;
            changed += !same;
            rest_is_same = rest_is_same && (same || covered);
          }
      INFO(name_of(pixel) << " " << color);
      CHECK(rest_is_same);
      CHECK((changed > 0) == (std::string(color) == "#ff0000"));
    }
}

TEST_CASE("opaque ink over a whole chroma sample is the colour's own number, in every matrix and range") {
  for (Pixel pixel : kHalvingChroma)
    for (const Tag tag : kTags)
      for (const Color color : {Color{255, 255, 255}, {0, 0, 0}, {255, 0, 0}, {0, 0, 255}, {17, 203, 96}}) {
        const Value picture = tagged_noise(pixel, 64, 64, 9, tag);
        TableTest draw(builtin("draw.text"),
                       {{"text", "."}, {"x", "20"}, {"y", "20"}, {"box", as_text(color)}, {"padding", "8"}});
        if (!has_font()) return;
        draw.input("video", picture);
        const Result result = draw.tick();
        REQUIRE(result.ok());
        const gpu::ColorMatrix matrix = gpu::color_matrix(picture.image().value().as.image);
        const ImageView made = result.image("video");
        CHECK(number(made, 0, 13, 13) == gpu::luma_of(matrix, color.r, color.g, color.b));
        CHECK(number(made, 1, 7, 7) == gpu::cb_of(matrix, 4 * color.r, 4 * color.g, 4 * color.b));
        CHECK(number(made, 2, 7, 7) == gpu::cr_of(matrix, 4 * color.r, 4 * color.g, 4 * color.b));
      }
}

TEST_CASE("a waveform monitor on planes is that of the picture in rgb8, and changes nothing outside its area") {
  for (Pixel pixel : kHalvingChroma)
    for (const Tag tag : kTags)
      for (const std::string mode : {"rgb", "parade"})
        for (const std::string position : {"alone", "bottom_right", "top_left"})
          for (const auto& [width, height] : {std::pair{128u, 80u}, {1u, 1u}, {33u, 7u}}) {
            if (position != "alone" && width != 128) continue; // there the monitor of rgb8 is at even places too
            const Value picture = tagged_noise(pixel, width, height, 7, tag);
            const Value in_rgb = testing::image(Pixel::rgb8, width, height, 0);
            convert_pixels(picture.image(), in_rgb.image());
            std::array<Result, 2> made;
            for (const bool planar : {false, true}) {
              TableTest draw(builtin("draw.waveform"), {{"mode", mode}, {"position", position}, {"size", "0.25"}});
              draw.input("video", planar ? picture : in_rgb);
              made[planar] = draw.tick();
              REQUIRE_MESSAGE(made[planar].ok(), made[planar].error);
            }
            const Value wanted = tagged_noise(pixel, width, height, 7, tag);
            const Rectangle area = position == "alone"          ? Rectangle{0, 0, width, height}
                                   : position == "bottom_right" ? Rectangle{94, 58, 126, 78}
                                                                : Rectangle{2, 2, 34, 22};
            const auto part = [&](const ImageSpan& of) {
              return SpanWindow(of, uint32_t(area.left), uint32_t(area.top), uint32_t(area.right - area.left),
                                uint32_t(area.bottom - area.top));
            };
            const Value traced = testing::image(Pixel::rgb8, width, height, 0);
            convert_pixels(made[0].image("video"), traced.image());
            convert_pixels(part(traced.image()).view(), part(wanted.image()).view());
            INFO(size_of(picture.image()) << " " << mode << " " << position);
            CHECK(same_pixels(made[1].image("video"), wanted.image()));
          }
}

TEST_CASE("the luma of planes is shown as the picture has it, in full range") {
  for (Pixel pixel : kHalvingChroma)
    for (const Tag tag : kTags) {
      const bool limited = tag.range == MR_RANGE_LIMITED;
      Value picture = tagged_noise(pixel, 8, 256, 1, tag);
      const uint32_t black = (limited ? 16 : 0) * (pixel == Pixel::p010 ? 4 : 1);
      for (uint32_t y = 0; y < 256; ++y)
        for (uint32_t x = 0; x < 8; ++x) {
          uint8_t* const row = picture.image().row(y);
          if (pixel == Pixel::p010)
            row[2 * x] = static_cast<uint8_t>(black << 6), row[2 * x + 1] = static_cast<uint8_t>(black >> 2);
          else
            row[x] = static_cast<uint8_t>(black);
        }
      TableTest draw(builtin("draw.waveform"), {{"position", "alone"}});
      draw.input("video", picture);
      const Result result = draw.tick();
      REQUIRE_MESSAGE(result.ok(), result.error);
      INFO(name_of(pixel));
      CHECK(number(result.image("video"), 0, 0, 255) > 2 * black + 100); // all pixels are at the bottom
      CHECK(number(result.image("video"), 0, 0, 200) == black);
    }
}
