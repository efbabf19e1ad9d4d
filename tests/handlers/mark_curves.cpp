// Marks that are curves: their distance, and how draw.marks paints them.
#include <doctest/doctest.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "builtin.h"
#include "handlers/gpu/mark_makers.h"
#include "handlers/gpu/mark_shapes.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;

namespace {

constexpr draw::MarkStyle kGray{false, false, Pixel::gray8};

Mark curve(float ax, float ay, float bx, float by, float cx, float cy, float width) {
  Mark mark;
  mark.kind = static_cast<int32_t>(MarkKind::curve);
  const float at[] = {ax, ay, bx, by, cx, cy};
  std::copy(std::begin(at), std::end(at), mark.at);
  mark.width = width;
  return mark;
}

struct Vec {
  double x, y;
};
Vec on_curve(const Mark& mark, double t) {
  const double first = (1 - t) * (1 - t), middle = 2 * t * (1 - t), last = t * t;
  return {first * mark.at[0] + middle * mark.at[4] + last * mark.at[2],
          first * mark.at[1] + middle * mark.at[5] + last * mark.at[3]};
}

// The distance to the curve itself, by many places on it.
double true_distance(const Mark& mark, double x, double y) {
  constexpr int kPlaces = 20'000;
  double nearest = 1e30;
  for (int n = 0; n <= kPlaces; ++n) {
    const Vec at = on_curve(mark, double{1} * n / kPlaces);
    nearest = std::min(nearest, std::hypot(at.x - x, at.y - y));
  }
  return nearest;
}

// The distance to the segments that stand for it.
float distance_to_pieces(const draw::MarkShape& curve, float x, float y) {
  float nearest = INFINITY;
  for (uint32_t piece = 0; piece < curve.pieces(); ++piece)
    nearest = std::min(nearest, draw::distance_to_segment(draw::piece_of(curve, piece), x, y));
  return nearest;
}

class AnyNumber {
 public:
  float operator()(double low, double high) {
    return static_cast<float>(low + (high - low) * (static_cast<double>(random_()) / 4294967295.0));
  }

 private:
  std::mt19937 random_{3};
};

Result painted(const std::vector<Mark>& marks, uint32_t width, uint32_t height) {
  TableTest test(builtin("draw.marks"), {});
  test.input("video", testing::image(Pixel::gray8, width, height, 0));
  test.input("marks", testing::records<Mark>(marks));
  Result result = test.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  return result;
}

} // namespace

TEST_CASE("the distance to a curve is right to 0.05 pixels, near it and far off, for curves of any shape") {
  AnyNumber any;
  double worst = 0;
  for (int n = 0; n < 60; ++n) {
    CAPTURE(n);
    const double size = n % 3 == 0 ? 3000 : n % 3 == 1 ? 300 : 20;
    Mark mark = curve(any(0, size), any(0, size), any(0, size), any(0, size), any(0, size), any(0, size), 2);
    if (n % 7 == 0) std::copy(mark.at, mark.at + 2, mark.at + 2);      // it comes back
    if (n % 11 == 0) mark.at[4] = mark.at[0], mark.at[5] = mark.at[1]; // it begins slowly
    if (n % 13 == 0) std::fill(mark.at + 2, mark.at + 6, mark.at[0]);  // nearly straight
    const draw::MarkShape shape = draw::shape_of(mark, kGray, 4000, 4000);
    REQUIRE(shape.pieces() > 0);
    for (int place = 0; place < 10; ++place) {
      const Vec near = on_curve(mark, any(0, 1));
      const float x = static_cast<float>(near.x) + any(-9, 9), y = static_cast<float>(near.y) + any(-9, 9);
      const double found = distance_to_pieces(shape, x, y);
      worst = std::max(worst, std::fabs(found - true_distance(mark, x, y)));
    }
  }
  CHECK(worst <= 0.05);
  CHECK(worst > 0.01); // the test sees the pieces
}

TEST_CASE("a chord of 400 pixels with the control point at 0.3 of it has about forty pieces, a straight one has one") {
  const draw::MarkShape bent = draw::shape_of(curve(0, 0, 400, 0, 200, 120, 1), kGray, 4000, 4000);
  CHECK(bent.pieces() >= 35);
  CHECK(bent.pieces() <= 40);
  CHECK(draw::shape_of(curve(0, 0, 400, 0, 200, 0, 1), kGray, 4000, 4000).pieces() == 1);
}

TEST_CASE("the area of a curve has all of it, and no more than its line needs") {
  AnyNumber any;
  for (int n = 0; n < 100; ++n) {
    const Mark mark = curve(any(50, 450), any(50, 450), any(50, 450), any(50, 450), any(-200, 700), any(-200, 700), 3);
    const draw::MarkShape shape = draw::shape_of(mark, kGray, 500, 500);
    int32_t left = 500, right = 0;
    for (int32_t y = 0; y < 500; y += 1)
      for (int32_t x = 0; x < 500; x += 1) {
        const float at_x = static_cast<float>(x) + 0.5f, at_y = static_cast<float>(y) + 0.5f;
        if (!shape.area.holds(x, y) && (x + y) % 7) continue; // most places beyond are far off
        const bool covers = draw::line_coverage(shape, false, distance_to_pieces(shape, at_x, at_y)) > 0;
        if (!covers) continue;
        REQUIRE(shape.area.holds(x, y));
        left = std::min(left, x);
        right = std::max(right, x + 1);
      }
    if (shape.area.top == 0 || shape.area.bottom == 500) continue; // its sides may lie beyond the canvas
    CHECK(left - shape.area.left <= 2);
    CHECK(shape.area.right - right <= 2);
  }
}

TEST_CASE("a curve is painted as its distance says, once, also where it crosses itself, and its colour runs along it") {
  Mark mark = curve(10, 20, 190, 25, 100, 150, 5);
  mark.color[3] = 0.5f;
  const Result result = painted({mark}, 200, 100);
  const draw::MarkShape shape = draw::shape_of(mark, kGray, 200, 100);
  int covered = 0;
  for (uint32_t y = 0; y < 100; ++y)
    for (uint32_t x = 0; x < 200; ++x) {
      const float at_x = static_cast<float>(x) + 0.5f, at_y = static_cast<float>(y) + 0.5f;
      const float distance = distance_to_pieces(shape, at_x, at_y);
      const float wanted = 255 * 0.5f * draw::line_coverage(shape, false, distance);
      REQUIRE(std::fabs(static_cast<float>(result.image("video").row(y)[x]) - wanted) <= 0.6f);
      covered += wanted > 0;
    }
  CHECK(covered > 1'000);

  Mark runs = curve(10, 50, 190, 50, 100, 50, 5); // straight, so that places are known
  std::fill(runs.color, runs.color + 3, 0.0f);
  std::fill(runs.fill, runs.fill + 4, 1.0f);
  const Result line = painted({runs}, 200, 100);
  CHECK(line.image("video").row(50)[100] == doctest::Approx(128).epsilon(0.02));
  CHECK(line.image("video").row(50)[55] == doctest::Approx(64).epsilon(0.04));
}

TEST_CASE("pieces of one stroke may be curves and segments, and are blended once") {
  Mark bent = curve(10, 20, 50, 20, 30, 40, 8), flat = bent;
  flat.kind = static_cast<int32_t>(MarkKind::segment);
  bent.color[3] = flat.color[3] = 0.5f;
  bent.stroke = flat.stroke = 3;
  const Result result = painted({bent, flat}, 64, 48);
  CHECK(result.image("video").row(20)[12] == 128);
  CHECK(result.image("video").row(29)[30] == 128);
  CHECK(result.image("video").row(20)[30] == 128);
}

TEST_CASE("a curve with a number that is not finite is skipped, its control point's too") {
  Mark mark = curve(1, 2, 3, 4, 5, 6, 1);
  CHECK(draw::is_sound(mark));
  mark.at[5] = NAN;
  CHECK_FALSE(draw::is_sound(mark));
  mark.at[5] = 1e7f;
  CHECK_FALSE(draw::is_sound(mark));
}

TEST_CASE("the control point of a curve between points lies beside the middle, from the lower id to the higher") {
  const auto control = [](float ax, float ay, float bx, float by, int64_t id_a, int64_t id_b) {
    std::vector<Point> points(2);
    points[0].x = ax, points[0].y = ay, points[1].x = bx, points[1].y = by;
    Link link;
    link.a = 0, link.b = 1, link.id_a = id_a, link.id_b = id_b;
    Mark mark;
    draw::make_line_mark(link, points.data(), 2, {1, 0, true, 0.3f, {false, {1, 1, 1, 1}, 1}}, mark);
    return mark;
  };
  const Mark level = control(0, 0, 100, 0, 1, 2);
  CHECK(level.kind == static_cast<int32_t>(MarkKind::curve));
  CHECK((level.at[4] == doctest::Approx(50) && level.at[5] == doctest::Approx(30)));
  const Mark steep = control(10, 20, 40, 60, -1, -1);
  CHECK((steep.at[4] == doctest::Approx(13) && steep.at[5] == doctest::Approx(49)));
  const Mark turned = control(40, 60, 10, 20, 9, 4); // the list is sorted anew
  CHECK((turned.at[4] == steep.at[4] && turned.at[5] == steep.at[5] && turned.at[0] == 10));
  const Mark dot = control(7, 8, 7, 8, 1, 2);
  CHECK(dot.kind == static_cast<int32_t>(MarkKind::segment));
  CHECK((dot.at[2] == 7 && dot.at[3] == 8));
}

TEST_CASE("marks.lines makes curves") {
  std::vector<Point> points(2);
  points[1].x = 100;
  std::vector<Link> links(1);
  links[0].b = 1;
  TableTest handler(builtin("marks.lines"), {{"shape", "curve"}, {"offset", "0.2"}, {"overshoot", "0.05"}});
  handler.input("links", testing::records<Link>(links));
  handler.input("points", testing::records<Point>(points));
  const Result result = handler.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  const Mark mark = result.records<Mark>("marks")[0];
  CHECK(mark.kind == static_cast<int32_t>(MarkKind::curve));
  CHECK((mark.at[4] == 50 && mark.at[5] == 25));
}
