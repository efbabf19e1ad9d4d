// image.letterbox: where a picture lies in a tensor, what is around it, and the way of boxes there and back.
#include "handlers/gpu/letterbox.h"

#include <doctest/doctest.h>
#include <millrace/payload/patch_transform.h>

#include <cmath>
#include <random>

#include "builtin.h"
#include "handlers/image/to_tensor.h"
#include "pictures.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;

namespace {

constexpr float kBorder = 0.25f;

// A black picture with one white rectangle.
Picture white_in_black(uint32_t width, uint32_t height, uint32_t left, uint32_t top, uint32_t right, uint32_t bottom) {
  Picture picture(Pixel::gray8, width, height);
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      picture.span().row(y)[x] = x >= left && x < right && y >= top && y < bottom ? 255 : 0;
  return picture;
}

std::vector<float> letterboxed(const Picture& picture, const Letterbox& box, uint32_t width, uint32_t height) {
  TensorForm form = tensor_form({"f32", "nchw", "rgb", "0", "1"});
  form.width = width;
  form.height = height;
  std::vector<float> numbers(size_t{3} * width * height, -1);
  PatchCutter().letterbox(picture.view(), box, kBorder, form, reinterpret_cast<uint8_t*>(numbers.data()));
  return numbers;
}

Box box_between(float left, float top, float right, float bottom) {
  Box box;
  box.x = left;
  box.y = top;
  box.width = right - left;
  box.height = bottom - top;
  return box;
}

float worst_difference(const Box& a, const Box& b) {
  return std::max({std::abs(a.x - b.x), std::abs(a.y - b.y), std::abs(a.x + a.width - b.x - b.width),
                   std::abs(a.y + a.height - b.y - b.height)});
}

} // namespace

TEST_CASE("a letterboxed picture keeps its shape, as large as fits, in the middle or at the upper left") {
  const auto placed = [](uint32_t width, uint32_t height, LetterboxRule rule) {
    const Letterbox box = letterbox_of(width, height, 640, 480, rule);
    return std::array<uint32_t, 4>{box.left, box.top, box.width, box.height};
  };
  CHECK(placed(1920, 1080, {}) == std::array<uint32_t, 4>{0, 60, 640, 360});
  CHECK(placed(1920, 1080, {.centred = false}) == std::array<uint32_t, 4>{0, 0, 640, 360});
  CHECK(placed(480, 640, {}) == std::array<uint32_t, 4>{140, 0, 360, 480});
  CHECK(placed(320, 240, {}) == std::array<uint32_t, 4>{0, 0, 640, 480});
  CHECK(placed(321, 241, {.enlarges = false}) == std::array<uint32_t, 4>{159, 119, 321, 241});
  CHECK(placed(1280, 960, {.enlarges = false}) == std::array<uint32_t, 4>{0, 0, 640, 480});
  CHECK(placed(1, 1, {}) == std::array<uint32_t, 4>{80, 0, 480, 480});
  CHECK(placed(65536, 1, {}) == std::array<uint32_t, 4>{0, 239, 640, 1}); // a pixel at least
  CHECK(placed(1, 65536, {}) == std::array<uint32_t, 4>{319, 0, 1, 480});
}

TEST_CASE("boxes go into a letterboxed tensor and back within 0.01 pixel, whatever the sizes") {
  std::mt19937 random(7);
  const auto drawn = [&](uint32_t most) { return 1 + static_cast<uint32_t>(random() % most); };
  for (int64_t i = test::part_of(20'000); i > 0; --i) {
    const uint32_t most = i % 4 == 0 ? 5 : 4096, width = drawn(most), height = drawn(most);
    const LetterboxRule rule{random() % 2 == 0, random() % 2 == 0};
    // Places are in single precision: beside a border of 600 pixels a patch of a few has less than 0.01 pixel.
    const Letterbox lies = letterbox_of(width, height, 64 + drawn(1216), 64 + drawn(1216), rule);
    const PatchTransform transform = transform_of(lies, width, height);
    const float x[] = {static_cast<float>(random() % 1000) / 999, static_cast<float>(random() % 1000) / 999};
    const float y[] = {static_cast<float>(random() % 1000) / 999, static_cast<float>(random() % 1000) / 999};
    const auto across = static_cast<float>(width), down = static_cast<float>(height);
    const Box box = box_between(std::min(x[0], x[1]) * across, std::min(y[0], y[1]) * down,
                                std::max(x[0], x[1]) * across, std::max(y[0], y[1]) * down);
    const Box there = transform.to_patch(box);
    CAPTURE(width);
    CAPTURE(height);
    REQUIRE(there.x >= static_cast<float>(lies.left) - 0.01f);
    REQUIRE(there.x + there.width <= static_cast<float>(lies.left + lies.width) + 0.01f);
    REQUIRE(there.y >= static_cast<float>(lies.top) - 0.01f);
    REQUIRE(there.y + there.height <= static_cast<float>(lies.top + lies.height) + 0.01f);
    REQUIRE(worst_difference(transform.to_picture(there), box) < 0.01f);
  }
}

TEST_CASE("a box that reaches into the border ends at the edge of the picture") {
  const PatchTransform transform = transform_of(letterbox_of(200, 100, 400, 400, {}), 200, 100);
  const Box box = transform.to_picture(box_between(-10, 50, 410, 200));
  CHECK(worst_difference(box, box_between(0, 0, 200, 50)) == 0);
  const Box outside = transform.to_picture(box_between(10, 320, 30, 390));
  CHECK(outside.height == 0);
  PatchTransform unknown = transform;
  unknown.width = unknown.height = 0;
  CHECK(worst_difference(unknown.to_picture(box_between(-10, 100, 410, 300)), box_between(-5, 0, 205, 100)) == 0);
}

TEST_CASE("things in a picture are where the transform says, and around it is the border") {
  for (const auto& [width, height] : {std::pair{64u, 48u}, {63u, 47u}, {200u, 31u}, {9u, 301u}, {1u, 1u}, {3u, 2u}})
    for (const auto& [to_width, to_height] : {std::pair{64u, 64u}, {33u, 65u}, {128u, 32u}, {1u, 1u}})
      for (const bool centred : {true, false})
        for (const bool enlarges : {true, false}) {
          const Letterbox lies = letterbox_of(width, height, to_width, to_height, {centred, enlarges});
          const uint32_t left = width / 4, top = height / 3, right = width - width / 5, bottom = height - height / 6;
          const std::vector<float> numbers =
              letterboxed(white_in_black(width, height, left, top, right, bottom), lies, to_width, to_height);
          const Box white = transform_of(lies, width, height)
                                .to_patch(box_between(static_cast<float>(left), static_cast<float>(top),
                                                      static_cast<float>(right), static_cast<float>(bottom)));
          // A pixel is mixed from the pixels whose centres are less than one of the picture's or of its own away.
          const PatchTransform scale = transform_of(lies, width, height);
          const float blur_x = std::max(1.0f, scale.scale_x), blur_y = std::max(1.0f, scale.scale_y);
          CAPTURE(width);
          CAPTURE(to_width);
          for (uint32_t y = 0; y < to_height; ++y)
            for (uint32_t x = 0; x < to_width; ++x) {
              const float number = numbers[size_t{y} * to_width + x];
              if (x < lies.left || y < lies.top || x >= lies.left + lies.width || y >= lies.top + lies.height) {
                REQUIRE(number == kBorder);
                continue;
              }
              const float at_x = static_cast<float>(x) + 0.5f, at_y = static_cast<float>(y) + 0.5f;
              const auto apart = [](float at, float from, float to) { return std::max(from - at, at - to); };
              const float off_x = apart(at_x, white.x, white.x + white.width),
                          off_y = apart(at_y, white.y, white.y + white.height);
              if (off_x < -blur_x && off_y < -blur_y) REQUIRE(number == doctest::Approx(1));
              if (off_x > blur_x || off_y > blur_y) REQUIRE(number == doctest::Approx(0));
            }
        }
}

TEST_CASE("a picture without pixels gives a tensor that is border alone") {
  const Letterbox none = letterbox_of(0, 0, 8, 6, {});
  CHECK(none.width == 0);
  CHECK(transform_of(none, 0, 0).scale_x == 1);
  const std::vector<float> numbers = letterboxed(Picture(Pixel::gray8, 0, 0), none, 8, 6);
  CHECK(std::all_of(numbers.begin(), numbers.end(), [](float number) { return number == kBorder; }));
}

TEST_CASE("image.letterbox gives the tensor and the transform, with the picture's times") {
  TableTest letterbox(builtin("image.letterbox"),
                      {{"width", "8"}, {"height", "6"}, {"fill", "0.5"}, {"mean", "0.5"}, {"std", "0.25"}});
  letterbox.input("video", testing::image(Pixel::rgb8, 4, 2, 255).at(123, 45).from_stream(6));
  const Result result = letterbox.tick();
  REQUIRE(result.ok());
  const TensorView made = result.tensor("tensor");
  CHECK(std::vector(made.shape().begin(), made.shape().end()) == std::vector<int64_t>{1, 3, 6, 8});
  const auto numbers = made.elements<float>();
  CHECK(numbers[0] == 0);              // the border, normalised
  CHECK(numbers[8] == 2);              // the picture's first row
  CHECK(numbers[5 * 8] == 0);          // the border below
  CHECK(numbers[2 * 48 + 8 * 4] == 2); // blue, the picture's last row
  CHECK(made.header().pts_ns == 123);
  CHECK(made.header().stream == 6);
  const auto said = result.records<PatchTransform>("transform");
  REQUIRE(said.size() == 1);
  CHECK(said[0].scale_x == 2);
  CHECK(said[0].scale_y == 2);
  CHECK(said[0].offset_x == 0);
  CHECK(said[0].offset_y == 1);
  CHECK(said[0].width == 4);
  CHECK(said[0].height == 2);
}
