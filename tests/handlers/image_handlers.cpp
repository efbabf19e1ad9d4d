// image.convert, image.resize and image.blur as handlers: formats, tags, times and live parameters.
#include <doctest/doctest.h>

#include "builtin.h"
#include "handlers/image/color.h"
#include "handlers/image/gaussian.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

Value lcg_noise(Pixel pixel, uint32_t width, uint32_t height) {
  uint32_t state = 1;
  return testing::image(pixel, width, height, [&state](uint32_t, uint32_t, uint32_t) {
    state = state * 1664525 + 1013904223;
    return state >> 24;
  });
}

} // namespace

TEST_CASE("image.convert makes the format that it announced, and keeps the times") {
  TableTest convert(builtin("image.convert"), {{"to", "nv12"}, {"matrix", "bt709"}, {"range", "full"}});
  convert.input("video", lcg_noise(Pixel::bgr8, 31, 17).at(123, 45).from_stream(6));
  const Result result = convert.tick();
  REQUIRE(result.ok());
  const ImageView made = result.image("video");
  CHECK(made.pixel() == Pixel::nv12);
  CHECK(made.color() == MR_COLOR_BT709);
  CHECK(made.range() == MR_RANGE_FULL);
  CHECK(made.header().pts_ns == 123);
  CHECK(made.header().duration_ns == 45);
  CHECK(made.header().stream == 6);
  CHECK(convert.format("video").pixel_formats == bit_of(Pixel::nv12));
  CHECK(convert.format("video").color == MR_COLOR_BT709);
  CHECK(convert.format("video").height == 17);
  Picture wanted = Picture(Pixel::nv12, 31, 17).tag(MR_COLOR_BT709, MR_RANGE_FULL);
  convert_pixels(lcg_noise(Pixel::bgr8, 31, 17).image(), wanted.span());
  CHECK(same_pixels(made, wanted.view()));
}

TEST_CASE("image.convert makes p010 by BT.2020, and says so") {
  TableTest convert(builtin("image.convert"), {{"to", "p010"}, {"matrix", "bt2020"}});
  convert.input("video", lcg_noise(Pixel::rgb8, 31, 17));
  const Result result = convert.tick();
  REQUIRE(result.ok());
  const ImageView made = result.image("video");
  CHECK(made.color() == MR_COLOR_BT2020);
  CHECK(made.range() == MR_RANGE_LIMITED);
  CHECK(convert.format("video").pixel_formats == bit_of(Pixel::p010));
  Picture wanted = Picture(Pixel::p010, 31, 17).tag(MR_COLOR_BT2020, MR_RANGE_LIMITED);
  convert_pixels(lcg_noise(Pixel::rgb8, 31, 17).image(), wanted.span());
  CHECK(same_pixels(made, wanted.view()));
}

TEST_CASE("image.convert to RGB says that it is full range, whatever came in") {
  TableTest convert(builtin("image.convert"), {{"to", "rgb8"}});
  const Value limited = testing::image(Pixel::nv12, 4, 4, 128);
  limited.raw().as.image.color = MR_COLOR_BT709;
  limited.raw().as.image.range = MR_RANGE_LIMITED;
  convert.input("video", limited);
  const Result result = convert.tick();
  CHECK(result.image("video").color() == MR_COLOR_SRGB);
  CHECK(result.image("video").range() == MR_RANGE_FULL);
  CHECK(result.image("video").row(0)[0] == 130); // (128 - 16) * 255 / 219
}

TEST_CASE("image.resize derives the side that is not given from the shape of the input") {
  const auto size_for = [](std::initializer_list<testing::Setting> settings) {
    TableTest resize(builtin("image.resize"), settings);
    resize.input("video", lcg_noise(Pixel::rgb8, 640, 360));
    const Result result = resize.tick();
    REQUIRE(result.ok());
    CHECK(resize.format("video").width == result.image("video").width());
    return std::pair{result.image("video").width(), result.image("video").height()};
  };
  CHECK(size_for({{"width", "320"}}) == std::pair{320u, 180u});
  CHECK(size_for({{"height", "90"}, {"method", "area"}}) == std::pair{160u, 90u});
  CHECK(size_for({{"width", "1"}}) == std::pair{1u, 1u});
  CHECK(size_for({{"width", "33"}, {"height", "44"}, {"method", "nearest"}}) == std::pair{33u, 44u});
}

TEST_CASE("image.resize without any size is refused before it starts") {
  TableTest resize(builtin("image.resize"));
  resize.input("video", lcg_noise(Pixel::rgb8, 8, 8));
  CHECK(resize.start() == MR_ERROR);
  CHECK(resize.error() == "image.resize needs a width, a height, or both");
}

TEST_CASE("image.resize keeps the times, and follows an input that changes its size within bounds") {
  TableTest resize(builtin("image.resize"), {{"width", "10"}, {"height", "10"}});
  resize.input("video", lcg_noise(Pixel::gray8, 40, 40).at(9, 8));
  CHECK(resize.tick().value("video").header().pts_ns == 9);
  resize.input("video", lcg_noise(Pixel::gray8, 20, 30));
  const Result smaller = resize.tick();
  REQUIRE(smaller.ok());
  CHECK(smaller.image("video").height() == 10);
}

TEST_CASE("image.blur blurs with the sigma of now") {
  TableTest blur(builtin("image.blur"), {{"sigma", "1"}});
  const Value picture = lcg_noise(Pixel::rgb8, 50, 20);
  blur.input("video", picture.at(77));
  for (const char* sigma : {"1", "3.5", "0", "50"}) {
    blur.set("sigma", sigma);
    const Result result = blur.tick();
    REQUIRE(result.ok());
    Picture wanted(Pixel::rgb8, 50, 20);
    GaussianBlur numerics;
    numerics.set_sigma(std::atof(sigma));
    numerics.run(picture.image(), wanted.span());
    INFO("sigma " << sigma);
    CHECK(same_pixels(result.image("video"), wanted.view()));
    CHECK(result.value("video").header().pts_ns == 77);
  }
}
