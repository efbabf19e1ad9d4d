// Turns against their definition, pixel by pixel, and cuts against the picture that they were cut from.
#include "handlers/image/turn.h"

#include <doctest/doctest.h>

#include <tuple>

#include "builtin.h"
#include "handlers/image/crop_picture.h"
#include "handlers/image/planes.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

constexpr Turn kTurns[] = {Turn::horizontal, Turn::vertical,  Turn::both,      Turn::rotate90,
                           Turn::rotate270,  Turn::transpose, Turn::transverse};
const std::pair<uint32_t, uint32_t> kTurnSizes[] = {{1, 1},  {1, 9},   {7, 1},   {5, 3},
                                                    {16, 4}, {22, 33}, {67, 40}, {131, 35}};

// The source sample that becomes the target's (x, y), in a plane of this size.
std::pair<uint32_t, uint32_t> origin(Turn turn, uint32_t x, uint32_t y, uint32_t width, uint32_t height) {
  switch (turn) {
    case Turn::horizontal: return {width - 1 - x, y};
    case Turn::vertical: return {x, height - 1 - y};
    case Turn::both: return {width - 1 - x, height - 1 - y};
    case Turn::rotate90: return {y, height - 1 - x};
    case Turn::rotate270: return {width - 1 - y, x};
    case Turn::transpose: return {y, x};
    case Turn::transverse: return {width - 1 - y, height - 1 - x};
  }
  return {0, 0};
}

uint64_t misplaced(Turn turn, const ImageView& source, const ImageView& target) {
  uint64_t count = 0;
  for (uint32_t plane = 0; plane < source.plane_count(); ++plane) {
    const uint32_t bytes = sample_bytes(source.pixel(), plane);
    const uint32_t width = plane_extent(source.pixel(), source.width(), plane), height = source.rows(plane);
    for (uint32_t y = 0; y < target.rows(plane); ++y)
      for (uint32_t x = 0; x < plane_extent(target.pixel(), target.width(), plane); ++x) {
        const auto [from_x, from_y] = origin(turn, x, y, width, height);
        count += std::memcmp(target.row(y, plane) + size_t{x} * bytes,
                             source.row(from_y, plane) + size_t{from_x} * bytes, bytes) != 0;
      }
  }
  return count;
}

Picture turned(Turn turn, const Picture& source) {
  const ImageView in = source.view();
  Picture target =
      swaps_sides(turn) ? Picture(in.pixel(), in.height(), in.width()) : Picture(in.pixel(), in.width(), in.height());
  turn_picture(turn, in, target.span());
  return target;
}

uint8_t noise_of(uint32_t x, uint32_t y, uint32_t c) { return static_cast<uint8_t>(x * 7 + y * 31 + c * 101); }

} // namespace

TEST_CASE("every turn puts every sample of every format where its definition says") {
  for (Turn turn : kTurns)
    for (Pixel pixel : kPixelFormats)
      for (const auto& [width, height] : kTurnSizes) {
        const Picture source = random_picture(pixel, width, height, 31);
        INFO(size_of(source.view()) << ", turn " << static_cast<int>(turn));
        CHECK(misplaced(turn, source.view(), turned(turn, source).view()) == 0);
      }
}

TEST_CASE("a turn and its opposite give the picture back") {
  const Picture source = random_picture(Pixel::rgb8, 45, 37, 32);
  for (Turn turn : {Turn::horizontal, Turn::vertical, Turn::both, Turn::transpose, Turn::transverse})
    CHECK(same_pixels(turned(turn, turned(turn, source)).view(), source.view()));
  CHECK(same_pixels(turned(Turn::rotate270, turned(Turn::rotate90, source)).view(), source.view()));
}

TEST_CASE("a turn leaves what lies beside the target's rows alone") {
  const Picture source = random_picture(Pixel::rgb8, 21, 5, 33);
  Picture target = random_picture(Pixel::rgb8, 21, 5, 34);
  turn_picture(Turn::horizontal, source.view(), target.span());
  for (uint32_t y = 0; y < 5; ++y)
    for (uint32_t i = 63; i < target.view().stride(); ++i) CHECK(target.view().row(y)[i] == 0xEE);
}

TEST_CASE("image.flip announces the size that it makes, and keeps times and tags") {
  for (const auto& [mode, width, height] : {std::tuple{"vertical", 31u, 18u}, std::tuple{"rotate90", 18u, 31u}}) {
    TableTest flip(builtin("image.flip"), {{"mode", mode}});
    const Value value = testing::image(Pixel::i420, 31, 18, 40).at(5, 6).from_stream(3);
    value.raw().as.image.color = MR_COLOR_BT709;
    value.raw().as.image.range = MR_RANGE_LIMITED;
    flip.input("video", value);
    const Result result = flip.tick();
    REQUIRE(result.ok());
    CHECK(flip.format("video").width == width);
    CHECK(flip.format("video").height == height);
    CHECK(result.image("video").width() == width);
    CHECK(result.image("video").height() == height);
    CHECK(result.image("video").color() == MR_COLOR_BT709);
    CHECK(result.image("video").range() == MR_RANGE_LIMITED);
    CHECK(result.image("video").header().pts_ns == 5);
    CHECK(result.image("video").header().duration_ns == 6);
    CHECK(result.image("video").header().stream == 3);
  }
}

TEST_CASE("a cut holds the pixels of its rectangle in every plane") {
  for (Pixel pixel : kPixelFormats) {
    const Picture source = random_picture(pixel, 41, 23, 35);
    for (const CropArea& asked :
         {CropArea{0, 0, 0, 0}, CropArea{6, 4, 9, 7}, CropArea{40, 22, 0, 0}, CropArea{2, 0, 39, 1}}) {
      const CropArea area = crop_area(asked, 41, 23, pixel);
      Picture target(pixel, area.width, area.height);
      crop_picture(source.view(), area.x, area.y, target.span());
      uint64_t wrong = 0;
      for (uint32_t plane = 0; plane < target.view().plane_count(); ++plane) {
        const uint32_t half = plane > 0 ? 2 : 1, bytes = sample_bytes(pixel, plane);
        for (uint32_t y = 0; y < target.view().rows(plane); ++y)
          for (uint32_t i = 0; i < plane_row_bytes(pixel, area.width, plane); ++i)
            wrong += target.view().row(y, plane)[i] !=
                     source.view().row(y + area.y / half, plane)[area.x / half * bytes + i];
      }
      INFO(size_of(target.view()));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a cut that is not inside the picture is refused with what would be, and never made smaller") {
  const auto refusal = [](const CropArea& area, Pixel pixel = Pixel::rgb8) -> std::string {
    try {
      crop_area(area, 100, 50, pixel);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal({100, 0, 0, 0}) == "x 100 is not in a picture of 100 pixels; x may be 0 to 99");
  CHECK(refusal({60, 0, 41, 10}) ==
        "x 60 and width 41 do not fit in a picture of 100 pixels; from there width may be at most 40");
  CHECK(refusal({0, 1, 0, UINT32_MAX}) ==
        "y 1 and height 4294967295 do not fit in a picture of 50 pixels; from there height may be at most 49");
  CHECK(refusal({99, 49, 1, 1}) == "");
  CHECK(refusal({3, 0, 10, 10}, Pixel::nv12) ==
        "x 3 and y 0 must both be even in a picture of nv12, whose chroma has half the size; convert it first, for "
        "example to rgb8");
  CHECK(refusal({3, 1, 10, 10}, Pixel::gray8) == "");
}

TEST_CASE("image.crop refuses before the first tick what does not fit, and cuts what does") {
  TableTest wrong(builtin("image.crop"), {{"x", "30"}, {"width", "40"}});
  wrong.input("video", testing::image(Pixel::rgb8, 64, 48, noise_of));
  CHECK(wrong.start() == MR_ERROR);
  CHECK(wrong.error() == "x 30 and width 40 do not fit in a picture of 64 pixels; from there width may be at most 34");

  TableTest crop(builtin("image.crop"), {{"x", "30"}, {"y", "7"}, {"height", "2"}});
  crop.input("video", testing::image(Pixel::rgb8, 64, 48, noise_of).at(8, 9));
  const Result result = crop.tick();
  REQUIRE(result.ok());
  CHECK(crop.format("video").width == 34);
  CHECK(crop.format("video").height == 2);
  CHECK(result.image("video").row(1)[3 * 33 + 2] == noise_of(63, 8, 2));
  CHECK(result.image("video").header().pts_ns == 8);
  CHECK_THROWS_WITH(TableTest(builtin("image.crop"), {{"x", "-1"}}), doctest::Contains("parameter 'x': '-1' is not"));
}

TEST_CASE("image.crop fails at a picture that became too small, and says why") {
  TableTest crop(builtin("image.crop"), {{"width", "40"}});
  crop.input("video", testing::image(Pixel::gray8, 64, 48, 1));
  REQUIRE(crop.tick().ok());
  crop.input("video", testing::image(Pixel::gray8, 39, 48, 1));
  CHECK(crop.tick().status == MR_ERROR);
  CHECK(crop.error() == "x 0 and width 40 do not fit in a picture of 39 pixels; from there width may be at most 39");
}
