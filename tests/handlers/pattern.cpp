// test.pattern: what it paints, what it says about itself, and the number that must survive the way.
#include <doctest/doctest.h>

#include <cstdlib>

#include "builtin.h"
#include "handlers/image/color.h"
#include "handlers/image/gaussian.h"
#include "handlers/image/resample.h"
#include "handlers/test/burnt_number.h"
#include "handlers/test/painting.h"
#include "pictures.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;

namespace {

constexpr uint32_t kNumbers[] = {0, 1, 0x55555555, 0xaaaaaaaa, 1234567, 0xffffffff};

Picture numbered(Pixel pixel, uint32_t width, uint32_t height, Pattern pattern, uint32_t number) {
  Picture canvas(Pixel::rgb8, width, height), picture(pixel, width, height);
  paint_pattern(pattern, number, canvas.span());
  burn_number(canvas.span(), number);
  convert_pixels(canvas.view(), picture.tag(MR_COLOR_BT601, MR_RANGE_LIMITED).span());
  return picture;
}

} // namespace

TEST_CASE("a burnt number is read back from every format, pattern and size that has room for it") {
  int64_t n = 0;
  for (Pixel pixel : {Pixel::rgb8, Pixel::gray8, Pixel::bgra8, Pixel::nv12, Pixel::i420})
    for (Pattern pattern : {Pattern::bars, Pattern::gradient, Pattern::disc})
      for (const auto& [width, height] : {std::pair{88u, 64u}, {641u, 479u}, {1280u, 720u}})
        for (uint32_t number : kNumbers) {
          if (!test::is_tried(n++)) continue;
          const Picture picture = numbered(pixel, width, height, pattern, number);
          INFO(size_of(picture.view()) << ", number " << number);
          CHECK(read_burnt_number(picture.view()) == number);
        }
}

TEST_CASE("a burnt number survives being halved, doubled and blurred") {
  int64_t n = 0;
  for (uint32_t number : kNumbers)
    for (ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::area})
      for (const auto& [width, height] : {std::pair{320u, 240u}, {1280u, 960u}, {500u, 240u}}) {
        if (!test::is_tried(n++)) continue;
        const Picture picture = numbered(Pixel::rgb8, 640, 480, Pattern::gradient, number);
        Picture resized(Pixel::rgb8, width, height), blurred(Pixel::rgb8, width, height);
        Resampler resampler;
        resampler.prepare(640, 480, width, height, method);
        resampler.run(picture.view(), resized.span());
        GaussianBlur blur;
        blur.set_sigma(2);
        blur.run(resized.view(), blurred.span());
        INFO(size_of(blurred.view()) << ", number " << number << ", method " << int(method));
        CHECK(read_burnt_number(resized.view()) == number);
        CHECK(read_burnt_number(blurred.view()) == number);
      }
}

TEST_CASE("no number is read where there is none, or where it was painted over") {
  Picture plain(Pixel::rgb8, 640, 480);
  CHECK(read_burnt_number(plain.view()) == std::nullopt);
  paint_pattern(Pattern::bars, 0, plain.span());
  CHECK(read_burnt_number(plain.view()) == std::nullopt);
  CHECK(read_burnt_number(random_picture(Pixel::gray8, 640, 480, 41).view()) == std::nullopt);
  Picture narrow(Pixel::gray8, 43, 10);
  burn_number(narrow.span(), 5);
  CHECK(read_burnt_number(narrow.view()) == std::nullopt);
  for (uint32_t block = 0; block < kNumberBlocks; ++block) {
    Picture scratched = numbered(Pixel::gray8, 440, 160, Pattern::bars, 99);
    for (uint32_t y = 0; y < 10; ++y)
      for (uint32_t x = block * 10; x < block * 10 + 10; ++x) scratched.span().row(y)[x] ^= 255;
    INFO("block " << block);
    CHECK(read_burnt_number(scratched.view()) == std::nullopt);
  }
}

TEST_CASE("every format of test.pattern carries the tick's index, for count ticks, then the end") {
  for (const char* format : {"rgb8", "gray8", "rgba8", "bgr8", "nv12", "i420"}) {
    TableTest pattern(builtin("test.pattern"),
                      {{"width", "161"}, {"height", "97"}, {"format", format}, {"count", "3"}});
    for (uint32_t index = 0; index < 3; ++index) {
      const Result result = pattern.tick();
      REQUIRE(result.ok());
      CHECK(name_of(result.image("video").pixel()) == format);
      CHECK(result.image("video").width() == 161);
      CHECK(read_burnt_number(result.image("video")) == index);
    }
    CHECK(pattern.tick().end());
    CHECK(pattern.facts().tick_count == 3);
    CHECK(pattern.facts().rate_num == 0);
    CHECK(pattern.facts().live == 0);
    CHECK(pattern.format("video").width == 161);
    CHECK(pattern.format("video").pixel_formats == bit_of(pixel_named(format)));
  }
}

TEST_CASE("in every format bars are the RGB bars with their number, converted") {
  for (const char* format : {"gray8", "rgba8", "bgr8", "nv12", "i420"})
    for (const auto& [width, height] : {std::pair<uint32_t, uint32_t>{97, 51}, {64, 1}, {130, 48}}) {
      TableTest pattern(builtin("test.pattern"),
                        {{"width", std::to_string(width)}, {"height", std::to_string(height)}, {"format", format}});
      Picture painted(Pixel::rgb8, width, height);
      Picture wanted = Picture(pixel_named(format), width, height).tag(MR_COLOR_BT601, MR_RANGE_LIMITED);
      for (uint32_t index = 0; index < 3; ++index) {
        const Result result = pattern.tick();
        paint_pattern(Pattern::bars, index, painted.span());
        burn_number(painted.span(), index);
        convert_pixels(painted.view(), wanted.span());
        INFO(format << " " << width << "×" << height << ", picture " << index);
        CHECK(same_pixels(result.image("video"), wanted.view()));
      }
    }
}

TEST_CASE("nv12 from test.pattern is tagged, in the plan and in every picture, as what it is") {
  TableTest pattern(builtin("test.pattern"), {{"format", "nv12"}});
  const Result result = pattern.tick();
  CHECK(result.image("video").color() == MR_COLOR_BT601);
  CHECK(result.image("video").range() == MR_RANGE_LIMITED);
  CHECK(pattern.format("video").color == MR_COLOR_BT601);
  CHECK(pattern.format("video").range == MR_RANGE_LIMITED);
}

TEST_CASE("test.pattern with a rate says so and stamps its pictures; a live one has the time of its tick") {
  TableTest film(builtin("test.pattern"), {{"fps", "29.97"}, {"width", "64"}, {"height", "48"}});
  film.period_ns(1);
  for (int64_t n = 0; n < 40; ++n) CHECK(film.tick().value("video").header().pts_ns == n * 1001 * 1'000'000 / 30);
  CHECK(film.facts().rate_num == 30000);
  CHECK(film.facts().rate_den == 1001);
  CHECK(film.facts().tick_count == -1);

  TableTest camera(builtin("test.pattern"), {{"fps", "50"}, {"live", "true"}, {"width", "64"}, {"height", "48"}});
  camera.period_ns(7);
  camera.tick();
  const Result second = camera.tick();
  CHECK(second.value("video").header().pts_ns == 7);
  CHECK(second.value("video").header().duration_ns == 20'000'000);
  CHECK(camera.facts().live == 1);
  CHECK(camera.facts().rate_num == 50);
}

TEST_CASE("test.pattern runs on a GPU where its pictures depend on the tick alone") {
  const auto gpu_cost = [](std::initializer_list<testing::Setting> settings) {
    TableTest pattern(builtin("test.pattern"), settings);
    REQUIRE(pattern.start() == MR_OK);
    return pattern.facts().cost_gpu_ns;
  };
  CHECK(gpu_cost({{"format", "nv12"}, {"count", "9"}}) == 0);
  CHECK(gpu_cost({{"fps", "30"}}) < 0);
  CHECK(gpu_cost({{"live", "true"}, {"fps", "30"}}) < 0);
  CHECK(gpu_cost({{"silent_every", "3"}}) < 0);
}

TEST_CASE("a rate that is not whole is told to the runtime as a fraction") {
  const auto rate_of = [](const char* fps) {
    TableTest pattern(builtin("test.pattern"), {{"fps", fps}});
    REQUIRE(pattern.start() == MR_OK);
    return std::pair{pattern.facts().rate_num, pattern.facts().rate_den};
  };
  CHECK(rate_of("23.976") == std::pair<int64_t, int64_t>{24000, 1001});
  CHECK(rate_of("23.98") == std::pair<int64_t, int64_t>{24000, 1001});
  CHECK(rate_of("59.94") == std::pair<int64_t, int64_t>{60000, 1001});
  CHECK(rate_of("12.5") == std::pair<int64_t, int64_t>{25, 2});
  CHECK(rate_of("0.5") == std::pair<int64_t, int64_t>{1, 2});
  CHECK(rate_of("0.0001") == std::pair<int64_t, int64_t>{1, 10000});
  CHECK(rate_of("1e-9").first > 0);
}

TEST_CASE("every silent_every-th tick of test.pattern has no picture, and the numbers go on") {
  TableTest pattern(builtin("test.pattern"), {{"silent_every", "3"}, {"width", "64"}, {"height", "48"}});
  for (uint32_t index = 0; index < 9; ++index) {
    const Result result = pattern.tick();
    REQUIRE(result.ok());
    CHECK(result.has("video") == (index % 3 != 2));
    if (result.has("video")) CHECK(read_burnt_number(result.image("video")) == index);
  }
}

TEST_CASE("the disc moves with the index, stays inside, and is where disc_at says") {
  for (const auto& [width, height] : {std::pair{320u, 240u}, {64u, 200u}, {1u, 1u}, {3u, 2u}}) {
    Disc before = disc_at(0, width, height);
    for (uint64_t index = 0; index < 400; ++index) {
      const Disc disc = disc_at(index, width, height);
      CHECK(disc.centre_x + disc.radius < width);
      CHECK(disc.centre_y + disc.radius < height);
      CHECK(disc.centre_x >= disc.radius);
      if (height > 16) CHECK(disc.centre_y >= disc.radius + burnt_number_rows(height));
      if (index > 0 && width > 16) CHECK(disc.centre_x != before.centre_x);
      before = disc;
    }
  }
  Picture picture(Pixel::rgb8, 320, 240);
  paint_pattern(Pattern::disc, 77, picture.span());
  const Disc disc = disc_at(77, 320, 240);
  const uint8_t* row = picture.view().row(disc.centre_y);
  CHECK(row[disc.centre_x * 3] == 255);
  CHECK(row[(disc.centre_x - disc.radius) * 3] == 255);
  CHECK(row[(disc.centre_x - disc.radius - 1) * 3] != 255);
}

TEST_CASE("every pattern fills every pixel of every size") {
  for (Pattern pattern : {Pattern::bars, Pattern::gradient, Pattern::disc})
    for (const auto& [width, height] : {std::pair{1u, 1u}, {7u, 3u}, {100u, 40u}}) {
      // Painted over two different grounds, the pictures are equal only where all was painted.
      Picture first = random_picture(Pixel::rgb8, width, height, 42),
              second = random_picture(Pixel::rgb8, width, height, 43);
      paint_pattern(pattern, 12, first.span());
      paint_pattern(pattern, 12, second.span());
      CHECK(same_pixels(first.view(), second.view()));
    }
}
