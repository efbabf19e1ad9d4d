// A picture of another size fits into the first one's with its proportions, as they are shown.
#include "plugins/media/frame_scale.h"

#include <doctest/doctest.h>

namespace millrace::media {
namespace {

constexpr Meaning kSquare{};

Meaning shaped(uint32_t num, uint32_t den) {
  Meaning meaning;
  meaning.aspect_num = num;
  meaning.aspect_den = den;
  return meaning;
}

bool is(const FittedPart& part, int x, int y, int width, int height) {
  return part.x == x && part.y == y && part.width == width && part.height == height;
}

} // namespace

TEST_CASE("a picture is fitted into the middle with its proportions") {
  CHECK(is(fitted_part(320, 240, kSquare, 640, 480, kSquare), 0, 0, 640, 480));
  CHECK(is(fitted_part(320, 180, kSquare, 640, 480, kSquare), 0, 60, 640, 360));
  CHECK(is(fitted_part(100, 200, kSquare, 640, 480, kSquare), 200, 0, 240, 480));
  CHECK(is(fitted_part(16384, 2, kSquare, 64, 48, kSquare), 0, 22, 64, 2)); // at least one sample of chroma
}

TEST_CASE("the shapes of the pixels count, the picture's and the target's") {
  CHECK(is(fitted_part(720, 576, shaped(64, 45), 1024, 576, kSquare), 0, 0, 1024, 576));
  CHECK(is(fitted_part(1024, 576, kSquare, 720, 576, shaped(64, 45)), 0, 0, 720, 576));
  CHECK(is(fitted_part(320, 240, shaped(4, 3), 320, 240, kSquare), 0, 30, 320, 180));
}

TEST_CASE("the corners of a part lie on whole samples of chroma") {
  for (int width = 1; width < 70; ++width) {
    for (int height = 1; height < 50; height += 3) {
      const FittedPart part = fitted_part(width, height, kSquare, 64, 48, kSquare);
      CHECK(part.x % 2 == 0);
      CHECK(part.y % 2 == 0);
      CHECK((part.width == 64 || part.height == 48));
      CHECK((part.x >= 0 && part.y >= 0 && part.x + part.width <= 64 && part.y + part.height <= 48));
    }
  }
}

} // namespace millrace::media
