// Colour conversion against the real-valued formulas, at sizes that are odd, tiny and longer than one chunk.
#include "handlers/image/color.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

struct Rgb {
  double r, g, b;
};
const std::vector<std::pair<uint32_t, uint32_t>> kColorSizes = {{1, 1}, {2, 2}, {3, 5}, {17, 1}, {1, 9}, {641, 7}};
const std::vector<Pixel> kPlanar = {Pixel::nv12, Pixel::i420};

double clamped(double value) { return std::min(std::max(value, 0.0), 255.0); }

std::pair<double, double> weights_of(uint32_t color) {
  if (color == MR_COLOR_BT709) return {0.2126, 0.0722};
  if (color == MR_COLOR_BT2020) return {0.2627, 0.0593};
  return {0.299, 0.114};
}

// Luma and chroma by the definition, in doubles and not rounded.
std::array<double, 3> encoded(Rgb p, uint32_t color, uint32_t range) {
  const auto [kr, kb] = weights_of(color);
  const bool limited = range == MR_RANGE_LIMITED;
  const double y = kr * p.r + (1 - kr - kb) * p.g + kb * p.b;
  const double chroma = limited ? 224.0 / 255 : 1;
  return {limited ? 16 + y * 219 / 255 : y, 128 + (p.b - y) / (2 * (1 - kb)) * chroma,
          128 + (p.r - y) / (2 * (1 - kr)) * chroma};
}

Rgb decoded(double y, double u, double v, uint32_t color, uint32_t range) {
  const auto [kr, kb] = weights_of(color);
  const bool limited = range == MR_RANGE_LIMITED;
  const double luma = limited ? (y - 16) * 255 / 219 : y, scale = limited ? 255.0 / 224 : 1;
  const double r = luma + 2 * (1 - kr) * (v - 128) * scale, b = luma + 2 * (1 - kb) * (u - 128) * scale;
  return {r, (luma - kr * r - kb * b) / (1 - kr - kb), b};
}

uint32_t red_at(Pixel pixel) { return pixel == Pixel::bgr8 || pixel == Pixel::bgra8 ? 2 : 0; }

Rgb pixel_at(const ImageView& picture, uint32_t x, uint32_t y) {
  const uint8_t* p = picture.row(y) + size_t{x} * bytes_per_pixel(picture.pixel());
  if (picture.pixel() == Pixel::gray8) return {double(p[0]), double(p[0]), double(p[0])};
  const uint32_t red = red_at(picture.pixel());
  return {double(p[red]), double(p[1]), double(p[2 - red])};
}

std::array<double, 2> chroma_at(const ImageView& picture, uint32_t x, uint32_t y) {
  if (picture.pixel() == Pixel::nv12) return {double(picture.row(y, 1)[2 * x]), double(picture.row(y, 1)[2 * x + 1])};
  return {double(picture.row(y, 1)[x]), double(picture.row(y, 2)[x])};
}

// The largest distance of a conversion from the definition.
double error_of_encoding(const ImageView& source, const ImageView& target) {
  double worst = 0;
  const uint32_t width = source.width(), height = source.height();
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x) {
      const double luma = encoded(pixel_at(source, x, y), target.color(), target.range())[0];
      worst = std::max(worst, std::abs(target.row(y)[x] - clamped(luma)));
    }
  for (uint32_t y = 0; y < height; y += 2)
    for (uint32_t x = 0; x < width; x += 2) {
      Rgb mean{0, 0, 0};
      for (uint32_t i = 0; i < 4; ++i) {
        const Rgb p = pixel_at(source, std::min(x + i % 2, width - 1), std::min(y + i / 2, height - 1));
        mean = {mean.r + p.r / 4, mean.g + p.g / 4, mean.b + p.b / 4};
      }
      const auto wanted = encoded(mean, target.color(), target.range());
      const auto made = chroma_at(target, x / 2, y / 2);
      worst = std::max({worst, std::abs(made[0] - clamped(wanted[1])), std::abs(made[1] - clamped(wanted[2]))});
    }
  return worst;
}

double error_of_decoding(const ImageView& source, const ImageView& target) {
  double worst = 0;
  for (uint32_t y = 0; y < source.height(); ++y)
    for (uint32_t x = 0; x < source.width(); ++x) {
      const auto chroma = chroma_at(source, x / 2, y / 2);
      const Rgb wanted = decoded(source.row(y)[x], chroma[0], chroma[1], source.color(), source.range());
      const Rgb made = pixel_at(target, x, y);
      worst = std::max({worst, std::abs(made.r - clamped(wanted.r)), std::abs(made.g - clamped(wanted.g)),
                        std::abs(made.b - clamped(wanted.b))});
    }
  return worst;
}

} // namespace

// Half a unit is the rounding; the rest is what 16-bit coefficients may add.
constexpr double kErrorMax = 0.5 + 0.02;
// And what 5 bits of fraction may add where YCbCr is decoded.
constexpr double kDecodingErrorMax = 0.5 + 0.08;

TEST_CASE("RGB becomes YCbCr within the rounding, for every matrix, range, layout and size") {
  for (const auto& [width, height] : kColorSizes)
    for (Pixel from : kInterleaved)
      for (Pixel to : kPlanar)
        for (uint32_t color : {MR_COLOR_BT601, MR_COLOR_BT709, MR_COLOR_BT2020})
          for (uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
            const Picture source = random_picture(from, width, height, 11);
            Picture target = Picture(to, width, height).tag(color, range);
            convert_pixels(source.view(), target.span());
            INFO(size_of(source.view()) << " to " << size_of(target.view()) << ", color " << color << ", range "
                                        << range);
            CHECK(error_of_encoding(source.view(), target.view()) <= kErrorMax);
          }
}

TEST_CASE("YCbCr becomes RGB within the rounding, for every matrix, range, layout and size") {
  for (const auto& [width, height] : kColorSizes)
    for (Pixel from : kPlanar)
      for (Pixel to : {Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})
        for (uint32_t color : {MR_COLOR_BT601, MR_COLOR_BT709, MR_COLOR_BT2020})
          for (uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
            const Picture source = random_picture(from, width, height, 12).tag(color, range);
            Picture target(to, width, height);
            convert_pixels(source.view(), target.span());
            INFO(size_of(source.view()) << " to " << size_of(target.view()) << ", color " << color << ", range "
                                        << range);
            CHECK(error_of_decoding(source.view(), target.view()) <= kDecodingErrorMax);
          }
}

TEST_CASE("RGB becomes gray by BT.601 within the rounding") {
  for (const auto& [width, height] : kColorSizes)
    for (Pixel from : kInterleaved) {
      const Picture source = random_picture(from, width, height, 13);
      Picture target(Pixel::gray8, width, height);
      convert_pixels(source.view(), target.span());
      double worst = 0;
      for (uint32_t y = 0; y < height; ++y)
        for (uint32_t x = 0; x < width; ++x) {
          const Rgb p = pixel_at(source.view(), x, y);
          worst = std::max(worst, std::abs(target.view().row(y)[x] - (0.299 * p.r + 0.587 * p.g + 0.114 * p.b)));
        }
      INFO(size_of(source.view()));
      CHECK(worst <= kErrorMax);
    }
}

TEST_CASE("colours survive any change of their order, and alpha where both formats have it") {
  for (Pixel from : {Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})
    for (Pixel to : {Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8}) {
      const Picture source = random_picture(from, 301, 3, 14);
      Picture target(to, 301, 3);
      convert_pixels(source.view(), target.span());
      bool equal = true, alpha = true;
      for (uint32_t y = 0; y < 3; ++y)
        for (uint32_t x = 0; x < 301; ++x) {
          const Rgb a = pixel_at(source.view(), x, y), b = pixel_at(target.view(), x, y);
          equal = equal && a.r == b.r && a.g == b.g && a.b == b.b;
          if (bytes_per_pixel(to) < 4) continue;
          const uint8_t wanted = bytes_per_pixel(from) == 4 ? source.view().row(y)[4 * x + 3] : uint8_t{255};
          alpha = alpha && target.view().row(y)[4 * x + 3] == wanted;
        }
      INFO(size_of(source.view()) << " to " << size_of(target.view()));
      CHECK(equal);
      CHECK(alpha);
    }
}

TEST_CASE("every gray stays the same gray through RGB, and full-range YCbCr, and back") {
  Picture gray(Pixel::gray8, 256, 2);
  for (uint32_t x = 0; x < 256; ++x) gray.span().row(0)[x] = gray.span().row(1)[x] = static_cast<uint8_t>(x);
  for (Pixel through : {Pixel::rgb8, Pixel::bgra8, Pixel::nv12, Pixel::i420}) {
    Picture between(through, 256, 2), back(Pixel::gray8, 256, 2);
    convert_pixels(gray.view(), between.span());
    convert_pixels(between.view(), back.span());
    INFO(size_of(between.view()));
    CHECK(same_pixels(gray.view(), back.view()));
  }
}

TEST_CASE("gray from limited-range YCbCr is the luma brought to full range") {
  Picture source = Picture(Pixel::i420, 256, 2).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
  for (uint32_t x = 0; x < 256; ++x) source.span().row(0)[x] = static_cast<uint8_t>(x);
  Picture gray(Pixel::gray8, 256, 2);
  convert_pixels(source.view(), gray.span());
  for (uint32_t x = 0; x < 256; ++x) CHECK(gray.view().row(0)[x] == std::lround(clamped((double(x) - 16) * 255 / 219)));
}

TEST_CASE("the two layouts of 4:2:0 hold the same numbers") {
  for (const auto& [width, height] : kColorSizes) {
    const Picture source = random_picture(Pixel::nv12, width, height, 15).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
    Picture between = Picture(Pixel::i420, width, height).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
    Picture back = Picture(Pixel::nv12, width, height).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
    convert_pixels(source.view(), between.span());
    convert_pixels(between.view(), back.span());
    INFO(size_of(source.view()));
    CHECK(same_pixels(source.view(), back.view()));
  }
}

TEST_CASE("a change of range alone moves black and white") {
  Picture full = Picture(Pixel::nv12, 2, 2).tag(MR_COLOR_BT601, MR_RANGE_FULL);
  for (uint32_t plane = 0; plane < 2; ++plane)
    for (uint32_t y = 0; y < full.span().rows(plane); ++y)
      for (uint32_t x = 0; x < 2; ++x) full.span().row(y, plane)[x] = plane == 0 ? uint8_t{255} : uint8_t{128};
  Picture limited = Picture(Pixel::nv12, 2, 2).tag(MR_COLOR_BT601, MR_RANGE_LIMITED);
  convert_pixels(full.view(), limited.span());
  CHECK(limited.view().row(0)[0] == 235);
  CHECK(limited.view().row(0, 1)[0] == 128);
}

namespace {

// A real-valued number of 8 bits in the 10 of p010.
double deep(double number, uint32_t range, double middle) {
  return range == MR_RANGE_LIMITED ? 4 * number : 4 * middle + (number - middle) * 1023 / 255;
}
double deep_luma(double number, uint32_t range) { return deep(number, range, 0); }
double deep_chroma(double number, uint32_t range) { return deep(number, range, 128); }

uint32_t number_at(const ImageView& picture, uint32_t plane, uint32_t x, uint32_t y) {
  uint16_t number;
  std::memcpy(&number, picture.row(y, plane) + size_t{x} * 2, 2);
  return number;
}

double error_of_deep_encoding(const ImageView& source, const ImageView& target) {
  double worst = 0;
  for (uint32_t y = 0; y < source.height(); ++y)
    for (uint32_t x = 0; x < source.width(); ++x) {
      const auto wanted = encoded(pixel_at(source, x, y), target.color(), target.range());
      worst = std::max(worst, std::abs((number_at(target, 0, x, y) >> 6) - deep_luma(wanted[0], target.range())));
    }
  return worst;
}

} // namespace

TEST_CASE("RGB becomes p010 within the rounding of 10 bits, and the bits below are 0") {
  for (const auto& [width, height] : kColorSizes)
    for (uint32_t color : {MR_COLOR_BT601, MR_COLOR_BT709, MR_COLOR_BT2020})
      for (uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
        const Picture source = random_picture(Pixel::bgra8, width, height, 31);
        Picture target = Picture(Pixel::p010, width, height).tag(color, range);
        convert_pixels(source.view(), target.span());
        INFO(size_of(target.view()) << ", color " << color << ", range " << range);
        CHECK(error_of_deep_encoding(source.view(), target.view()) <= 0.5 + 0.03);
        CHECK((number_at(target.view(), 0, 0, 0) & 63) == 0);
        CHECK((number_at(target.view(), 1, 1, 0) & 63) == 0);
      }
}

TEST_CASE("the chroma of p010 is that of the mean of four pixels") {
  Picture source(Pixel::rgb8, 3, 3);
  for (uint32_t y = 0; y < 3; ++y)
    for (uint32_t x = 0; x < 3; ++x) source.span().row(y)[3 * x] = x < 2 && y < 2 ? uint8_t{0} : uint8_t{255};
  source.span().row(0)[0] = 255;
  Picture target = Picture(Pixel::p010, 3, 3).tag(MR_COLOR_BT2020, MR_RANGE_LIMITED);
  convert_pixels(source.view(), target.span());
  for (const auto& [x, red] : {std::pair{0u, 255.0 / 4}, std::pair{1u, 255.0}})
    for (uint32_t which : {0u, 1u}) {
      const double wanted =
          deep_chroma(encoded({red, 0, 0}, MR_COLOR_BT2020, MR_RANGE_LIMITED)[1 + which], MR_RANGE_LIMITED);
      CHECK(std::abs((number_at(target.view(), 1, 2 * x + which, 0) >> 6) - wanted) <= 0.5 + 0.03);
    }
}

TEST_CASE("p010 becomes RGB within the rounding") {
  for (uint32_t color : {MR_COLOR_BT601, MR_COLOR_BT709, MR_COLOR_BT2020})
    for (uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
      const Picture source = random_picture(Pixel::p010, 641, 7, 32).tag(color, range);
      Picture target(Pixel::rgba8, 641, 7);
      convert_pixels(source.view(), target.span());
      const auto shallow = [&](uint32_t number, double middle) {
        return range == MR_RANGE_LIMITED ? number / 4.0 : middle + (number - 4 * middle) * 255 / 1023;
      };
      double worst = 0;
      for (uint32_t y = 0; y < 7; ++y)
        for (uint32_t x = 0; x < 641; ++x) {
          const uint32_t pair = x / 2 * 2;
          const Rgb wanted = decoded(shallow(number_at(source.view(), 0, x, y) >> 6, 0),
                                     shallow(number_at(source.view(), 1, pair, y / 2) >> 6, 128),
                                     shallow(number_at(source.view(), 1, pair + 1, y / 2) >> 6, 128), color, range);
          const Rgb made = pixel_at(target.view(), x, y);
          worst = std::max({worst, std::abs(made.r - clamped(wanted.r)), std::abs(made.g - clamped(wanted.g)),
                            std::abs(made.b - clamped(wanted.b))});
        }
      INFO("color " << color << ", range " << range);
      CHECK(worst <= 0.5 + 0.03);
    }
}

TEST_CASE("numbers of 8 bits come back from p010, which holds them scaled") {
  for (Pixel planar : kPlanar)
    for (uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED})
      for (const auto& [width, height] : kColorSizes) {
        const Picture source = random_picture(planar, width, height, 33).tag(MR_COLOR_BT709, range);
        Picture between = Picture(Pixel::p010, width, height).tag(MR_COLOR_BT709, range);
        Picture back = Picture(planar, width, height).tag(MR_COLOR_BT709, range);
        convert_pixels(source.view(), between.span());
        convert_pixels(between.view(), back.span());
        INFO(size_of(source.view()) << ", range " << range);
        CHECK(same_pixels(source.view(), back.view()));
        CHECK((number_at(between.view(), 0, 0, 0) >> 6) == std::lround(deep_luma(source.view().row(0)[0], range)));
      }
}

TEST_CASE("p010 that stays p010 keeps every bit, and gray goes through it and back") {
  const Picture source = random_picture(Pixel::p010, 17, 5, 34).tag(MR_COLOR_BT601, MR_RANGE_FULL);
  Picture same = Picture(Pixel::p010, 17, 5).tag(MR_COLOR_BT601, MR_RANGE_FULL);
  convert_pixels(source.view(), same.span());
  CHECK(same_pixels(source.view(), same.view()));
  for (uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
    const Picture gray = random_picture(Pixel::gray8, 17, 5, 35);
    Picture between = Picture(Pixel::p010, 17, 5).tag(MR_COLOR_BT601, range), back(Pixel::gray8, 17, 5);
    convert_pixels(gray.view(), between.span());
    convert_pixels(between.view(), back.span());
    CHECK(same_pixels(gray.view(), back.view()));
  }
}

TEST_CASE("a conversion that changes the size, or of no format, is refused") {
  Picture none(Pixel::none, 4, 4), small(Pixel::rgb8, 4, 4), large(Pixel::rgb8, 5, 4);
  CHECK(can_convert(Pixel::p010));
  CHECK_FALSE(can_convert(Pixel::none));
  CHECK_THROWS_AS(convert_pixels(none.view(), small.span()), std::invalid_argument);
  CHECK_THROWS_AS(convert_pixels(small.view(), none.span()), std::invalid_argument);
  CHECK_THROWS_AS(convert_pixels(small.view(), large.span()), std::invalid_argument);
}
