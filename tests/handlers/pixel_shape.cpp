// The shape of pixels through handlers that change a picture's size: what is shown keeps its proportions.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/handlers/builtin.h"

namespace millrace::handlers {
namespace {

struct PixelShape {
  uint32_t width, height, aspect_num, aspect_den;
};

// The shape that a handler makes of a picture of this one; the plan's word and the value's have to agree.
PixelShape made_by(const std::string& type, std::initializer_list<testing::Setting> settings, const PixelShape& from) {
  testing::TableTest test(builtin(type), settings);
  testing::Value picture = testing::image(Pixel::rgb8, from.width, from.height, [](auto, auto, auto) { return 9u; });
  picture.raw().as.image.aspect_num = from.aspect_num;
  picture.raw().as.image.aspect_den = from.aspect_den;
  test.input("video", picture);
  const testing::Result result = test.tick();
  INFO(result.error);
  REQUIRE(result.ok());
  const mr_image& image = result.value("video").raw().as.image;
  return {image.width, image.height, image.aspect_num, image.aspect_den};
}

double shown(const PixelShape& shape) {
  const double pixel = shape.aspect_den ? static_cast<double>(shape.aspect_num) / shape.aspect_den : 1;
  return pixel * shape.width / shape.height;
}

} // namespace

TEST_CASE("a picture of other than square pixels is shown in the same shape after it was scaled or turned") {
  const PixelShape from{64, 48, 4, 3};
  for (const int width : {32, 64, 85, 100}) {
    const PixelShape made = made_by("image.resize", {{"width", std::to_string(width)}, {"height", "48"}}, from);
    INFO("width ", width);
    CHECK(std::abs(shown(made) - shown(from)) < 0.02);
    CHECK((made.aspect_den == 0) == (width == 85)); // square pixels
  }
  const PixelShape turned = made_by("image.flip", {{"mode", "rotate90"}}, from);
  CHECK(std::abs(shown(turned) - 1 / shown(from)) < 1e-9);
  CHECK(shown(made_by("image.flip", {{"mode", "both"}}, from)) == shown(from));
  CHECK(shown(made_by("image.crop", {{"width", "24"}, {"height", "48"}}, from)) ==
        doctest::Approx(4.0 / 3 * 24 / 48)); // its pixels are as they were
  CHECK(made_by("image.convert", {{"to", "i420"}}, from).aspect_num == 4);
}

TEST_CASE("square pixels stay square, whatever shape a picture is scaled to") {
  CHECK(made_by("image.resize", {{"width", "10"}, {"height", "48"}}, {64, 48, 0, 0}).aspect_den == 0);
}

} // namespace millrace::handlers
