// draw.trails: lines where boxes with ids were, in the colours of the ids, and for as long as they last.
#include <doctest/doctest.h>

#include "builtin.h"
#include "handlers/gpu/box_marks.h"
#include "ink.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;

namespace {

Box box_with_foot(float x, float y, int64_t id) {
  Box box;
  box.x = x - 5;
  box.y = y - 20;
  box.width = 10;
  box.height = 20;
  box.id = id;
  return box;
}

Result drawn(TableTest& test, const std::vector<Box>& boxes) {
  test.input("video", testing::image(Pixel::rgb8, 100, 60, 0));
  test.input("boxes", testing::records<Box>(boxes));
  Result result = test.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  return result;
}

Color color_at(const Result& result, uint32_t x, uint32_t y) {
  const uint8_t* pixel = result.image("video").row(y) + size_t{x} * 3;
  return {pixel[0], pixel[1], pixel[2]};
}

const Color kNone = {0, 0, 0};

} // namespace

TEST_CASE("a trail goes through the feet of a box, in the colour of its id, and box without an id has none") {
  TableTest test(builtin("draw.trails"), {{"thickness", "6"}, {"length", "10"}});
  CHECK(color_at(drawn(test, {box_with_foot(10, 40, 3), box_with_foot(10, 20, -1)}), 10, 40) == kNone); // no line yet
  const Result result = drawn(test, {box_with_foot(60, 40, 3), box_with_foot(60, 20, -1)});
  for (uint32_t x = 12; x < 60; ++x) {
    CHECK(color_at(result, x, 40) == draw::box_color(3));
    CHECK(color_at(result, x, 20) == kNone);
  }
  CHECK(color_at(result, 30, 46) == kNone);
  CHECK(color_at(result, 70, 40) == kNone);
  const Result other = drawn(test, {box_with_foot(60, 40, 3), box_with_foot(60, 20, 15)}); // 15 has the colour of 3
  CHECK(color_at(other, 30, 40) == draw::box_color(3));
  CHECK(color_at(other, 30, 20) == kNone); // it begins here
}

TEST_CASE("a trail reaches back for its length, and of a box that is gone it grows shorter until nothing is left") {
  TableTest test(builtin("draw.trails"), {{"thickness", "4"}, {"length", "4"}});
  for (int step = 0; step < 6; ++step) drawn(test, {box_with_foot(static_cast<float>(10 + 10 * step), 30, 1)});
  const auto length = [&](const Result& result) {
    uint32_t count = 0;
    for (uint32_t x = 0; x < 100; ++x) count += !(color_at(result, x, 30) == kNone);
    return count;
  };
  uint32_t last = length(drawn(test, {box_with_foot(70, 30, 1)}));
  CHECK(last >= 30); // three steps of ten pixels
  CHECK(last < 36);
  for (int gone = 0; gone < 3; ++gone) {
    const uint32_t now = length(drawn(test, {}));
    CHECK(now < last);
    last = now;
  }
  CHECK(last == 0);
}

TEST_CASE("after a reset nothing is known of earlier boxes") {
  TableTest test(builtin("draw.trails"));
  drawn(test, {box_with_foot(10, 30, 1)});
  CHECK(test.reset() == MR_OK);
  CHECK(color_at(drawn(test, {box_with_foot(60, 30, 1)}), 30, 30) == kNone);
}
