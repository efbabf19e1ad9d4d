// Distances and coverages of marks, against the values of the rule (docs/reference/marks.md).
#include "handlers/gpu/mark_shapes.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

using namespace millrace;
using namespace millrace::handlers::draw;

namespace {

constexpr MarkStyle kCrisp = {false, false, Pixel::rgb8}, kSoft = {true, false, Pixel::rgb8};

Mark mark_of(MarkKind kind, std::array<float, 5> at, float width, float roundness = 0) {
  Mark mark;
  mark.kind = static_cast<int32_t>(kind);
  std::copy(at.begin(), at.end(), mark.at);
  mark.width = width;
  mark.roundness = roundness;
  return mark;
}

MarkShape shape(const Mark& mark, const MarkStyle& style) { return shape_of(mark, style, 256, 144); }

// The share of a pixel that is covered, by line or inside.
float coverage_at(const MarkShape& mark, bool soft, int32_t x, int32_t y) {
  const float at_x = static_cast<float>(x) + 0.5f, at_y = static_cast<float>(y) + 0.5f;
  const float distance = mark.is_box() ? distance_to_box(mark, at_x, at_y) : distance_to_segment(mark, at_x, at_y);
  const float line = mark.has_line ? line_coverage(mark, soft, std::fabs(distance)) : 0;
  return mark.has_fill ? std::max(line, fill_coverage(distance)) : line;
}

doctest::Approx near(double value) { return doctest::Approx(value).scale(1).epsilon(2e-6); }

} // namespace

TEST_CASE("a line of 1.5 pixels covers what the table of the rule says") {
  const Mark mark = mark_of(MarkKind::segment, {0, 0, 100, 0}, 1.5f);
  const MarkShape soft = shape(mark, kSoft), crisp = shape(mark, kCrisp);
  const struct {
    float distance;
    double soft, crisp;
  } table[] = {{0, 0.843750, 1},    {0.25f, 0.740741, 1}, {0.5f, 0.623843, 0.75}, {0.75f, 0.5, 0.5},
               {1, 0.376157, 0.25}, {1.5f, 0.156250, 0},  {2, 0.019676, 0},       {2.25f, 0, 0}};
  for (const auto& row : table) {
    CHECK(line_coverage(soft, true, row.distance) == near(row.soft));
    CHECK(line_coverage(crisp, false, row.distance) == near(row.crisp));
  }
}

TEST_CASE("the distance to a capsule, and what a soft line of 2 covers there") {
  const MarkShape line = shape(mark_of(MarkKind::segment, {10, 10, 50, 40}, 2), kSoft);
  const struct {
    float x, y;
    double distance, coverage;
  } table[] = {{30.5f, 25.5f, 0.1, 0.896},
               {8.5f, 9.5f, 1.581139, 0.223969},
               {50.5f, 41.5f, 1.581139, 0.223969},
               {20.5f, 20.5f, 2.1, 0.048593}};
  for (const auto& row : table) {
    const float distance = distance_to_segment(line, row.x, row.y);
    CHECK(distance == near(row.distance));
    CHECK(line_coverage(line, true, distance) == near(row.coverage));
  }
}

TEST_CASE("the distance to a rounded box, and what a soft stroke of 2 covers there") {
  const MarkShape box = shape(mark_of(MarkKind::box, {30, 30, 40, 40, 0}, 2, 0.5f), kSoft);
  const struct {
    float x, y;
    double distance, coverage;
  } table[] = {{10.5f, 10.5f, 3.435029, 0},
               {12.5f, 12.5f, 0.606602, 0.779828},
               {10.5f, 30.5f, -0.5, 0.843750},
               {11.5f, 30.5f, -1.5, 0.156250},
               {30.5f, 30.5f, -19.5, 0}};
  for (const auto& row : table) {
    const float distance = distance_to_box(box, row.x, row.y);
    CHECK(distance == near(row.distance));
    CHECK(line_coverage(box, true, std::fabs(distance)) == near(row.coverage));
  }
}

TEST_CASE("a segment of no length is a disc, a line below one pixel is fainter, and a width of 0 is no line") {
  const MarkShape dot = shape(mark_of(MarkKind::segment, {20, 20, 20, 20}, 8), kCrisp);
  CHECK(distance_to_segment(dot, 23.0f, 24) == near(5));
  CHECK(line_coverage(dot, false, 4.0f) == near(0.5));
  const MarkShape thin = shape(mark_of(MarkKind::segment, {0, 0, 100, 0}, 0.3f), kCrisp);
  CHECK(line_coverage(thin, false, 0.0f) == near(0.3));
  CHECK(line_coverage(thin, false, 0.5f) == near(0.15));
  CHECK_FALSE(shape(mark_of(MarkKind::segment, {0, 0, 100, 0}, 0), kSoft).has_line);
}

TEST_CASE("the area of a mark has every pixel that it covers, and ends at the canvas") {
  for (const MarkStyle& style : {kCrisp, kSoft})
    for (const float turn : {0.0f, 0.3f, 2.0f})
      for (const float width : {0.3f, 1.0f, 7.0f}) {
        Mark box = mark_of(MarkKind::box, {60.3f, 50.2f, 70, 30, turn}, width, 0.4f);
        box.fill[3] = 1;
        const Mark line = mark_of(MarkKind::segment, {-20, 30.5f, 90, 200}, width);
        for (const Mark& mark : {box, line}) {
          const MarkShape found = shape(mark, style);
          CHECK((found.area.left >= 0 && found.area.top >= 0 && found.area.right <= 256 && found.area.bottom <= 144));
          for (int32_t y = 0; y < 144; ++y)
            for (int32_t x = 0; x < 256; ++x)
              if (coverage_at(found, style.soft, x, y) > 1e-5f) REQUIRE(found.area.holds(x, y));
        }
      }
}

TEST_CASE("an area in which a mark covers a pixel is touched, and most others are not") {
  std::mt19937 random(5);
  const auto any = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * (static_cast<double>(random()) / 4294967295.0));
  };
  int touched = 0, empty = 0;
  for (int n = 0; n < 400; ++n) {
    Mark mark;
    const bool is_box = n % 2;
    mark.kind = static_cast<int32_t>(is_box ? MarkKind::box : MarkKind::segment);
    for (int i = 0; i < 4; ++i) mark.at[i] = any(0, 200);
    mark.at[4] = is_box && n % 3 ? any(-3, 3) : 0;
    mark.width = any(0, 6);
    mark.roundness = any(0, 1);
    mark.fill[3] = is_box && n % 4 == 1 ? 1 : 0;
    const MarkStyle style = {n % 5 == 0, false, Pixel::gray8};
    const MarkShape found = shape_of(mark, style, 200, 200);
    for (int32_t top = 0; top < 200; top += 8)
      for (int32_t left = 0; left < 200; left += 20) {
        bool covers = false;
        for (int32_t y = top; y < top + 8; ++y)
          for (int32_t x = left; x < left + 20; ++x) covers = covers || coverage_at(found, style.soft, x, y) > 0;
        const bool touched_here = touches(found, {left, top, left + 20, top + 8});
        touched += touched_here;
        empty += touched_here && !covers;
        if (covers) REQUIRE(touched_here);
      }
  }
  CHECK(touched > 10'000);
  CHECK(empty < touched / 3);
}

TEST_CASE("marks with NaN, of an unknown kind, of negative size or beyond any picture are not sound") {
  const Mark sound = mark_of(MarkKind::box, {1, 2, 3, 4, 5}, 1);
  CHECK(is_sound(sound));
  CHECK(is_sound(mark_of(MarkKind::segment, {1, 2, -3, -4, NAN}, 1))); // its fifth number means nothing
  CHECK(is_sound(mark_of(MarkKind::box, {-1e6f, 1e6f, 1e6f, 0, 0}, 0)));
  for (uint32_t i = 0; i < 5; ++i)
    for (const float wrong : {NAN, std::numeric_limits<float>::infinity(), -1.1e6f}) {
      Mark mark = sound;
      mark.at[i] = wrong;
      CHECK_FALSE(is_sound(mark));
    }
  for (float Mark::*number : {&Mark::width, &Mark::roundness}) {
    Mark mark = sound;
    mark.*number = NAN;
    CHECK_FALSE(is_sound(mark));
  }
  for (uint32_t c = 0; c < 4; ++c) {
    Mark mark = sound;
    mark.color[c] = NAN;
    CHECK_FALSE(is_sound(mark));
    mark = sound;
    mark.fill[c] = NAN;
    CHECK_FALSE(is_sound(mark));
  }
  Mark mark = sound;
  mark.kind = 3;
  CHECK_FALSE(is_sound(mark));
  mark = sound;
  mark.at[3] = -1;
  CHECK_FALSE(is_sound(mark));
}
