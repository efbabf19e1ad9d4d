// draw.marks and the makers of its marks. Pictures of whole scenes are compared in tests/marks.
#include <doctest/doctest.h>
#include <millrace/payload/marks.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "builtin.h"
#include "handlers/gpu/box_marks.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

using Color4 = std::array<float, 4>;

Mark segment(float ax, float ay, float bx, float by, float width, Color4 color) {
  Mark mark;
  mark.at[0] = ax;
  mark.at[1] = ay;
  mark.at[2] = bx;
  mark.at[3] = by;
  mark.width = width;
  std::copy(color.begin(), color.end(), mark.color);
  return mark;
}

Mark inside(float x, float y, float width, float height, Color4 color) {
  Mark mark = segment(x, y, width, height, 0, color);
  mark.kind = static_cast<int32_t>(MarkKind::box);
  std::copy(color.begin(), color.end(), mark.fill);
  return mark;
}

Result painted(const Value& canvas, const std::vector<Mark>& marks, const std::string& edge = "crisp",
               const std::string& blend = "over") {
  TableTest test(builtin("draw.marks"), {{"edge", edge}, {"blend", blend}});
  test.input("video", canvas);
  test.input("marks", testing::records<Mark>(marks));
  Result result = test.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  return result;
}

std::vector<int> pixel_at(const Result& result, uint32_t x, uint32_t y) {
  const ImageView picture = result.image("video");
  const uint32_t bytes = bytes_per_pixel(picture.pixel());
  const uint8_t* const at = picture.row(y) + size_t{x} * bytes;
  return {at, at + bytes};
}

// How much of each pixel a line covers, by 64 places in it.
double covered_share(double ax, double ay, double bx, double by, double width, uint32_t column, uint32_t row) {
  const double dx = bx - ax, dy = by - ay, squared = dx * dx + dy * dy;
  int inside = 0;
  for (int place = 0; place < 64; ++place) {
    const double x = column + (place % 8 + 0.5) / 8, y = row + (place / 8 + 0.5) / 8;
    const double along = std::clamp(((x - ax) * dx + (y - ay) * dy) / squared, 0.0, 1.0);
    inside += std::hypot(x - ax - along * dx, y - ay - along * dy) <= width / 2;
  }
  return inside / 64.0;
}

} // namespace

TEST_CASE("a translucent white line on white stays white, and the alpha of a canvas grows") {
  for (const Pixel pixel : kInterleaved)
    for (const std::string edge : {"crisp", "soft"})
      for (const std::string blend : {"over", "add"}) {
        const Result result = painted(
            testing::image(pixel, 64, 32, 255),
            {segment(3, 4, 60, 29, 5, {1, 1, 1, 0.5f}), segment(0, 8, 64, 8, 0.4f, {1, 1, 1, 0.3f})}, edge, blend);
        for (uint32_t y = 0; y < 32; ++y)
          for (uint32_t x = 0; x < 64; ++x)
            for (const int channel : pixel_at(result, x, y)) REQUIRE(channel == 255);
      }
  const Result result = painted(testing::image(Pixel::rgba8, 64, 32, 0), {inside(32, 16, 64, 32, {1, 0.5f, 0, 0.4f})});
  CHECK(pixel_at(result, 30, 16) == std::vector{102, 51, 0, 102});
}

TEST_CASE("pieces of one stroke are blended once, and marks of their own each") {
  std::vector<Mark> marks = {segment(10, 10, 40, 10, 8, {1, 1, 1, 0.5f}), segment(40, 10, 40, 30, 8, {1, 1, 1, 0.5f})};
  const Value canvas = testing::image(Pixel::gray8, 64, 40, 0);
  CHECK(pixel_at(painted(canvas, marks), 40, 10) == std::vector{191});
  marks[0].stroke = marks[1].stroke = 5;
  const Result one = painted(canvas, marks);
  CHECK(pixel_at(one, 40, 10) == std::vector{128});
  CHECK(pixel_at(one, 25, 10) == std::vector{128});
  CHECK(pixel_at(one, 40, 25) == std::vector{128});
  marks[1].stroke = 6;
  CHECK(pixel_at(painted(canvas, marks), 40, 10) == std::vector{191});
}

TEST_CASE(
    "lists are painted in their order, the same stroke number in two lists is two strokes, and a list may be absent") {
  TableTest test(builtin("draw.marks"), {});
  test.input("video", testing::image(Pixel::gray8, 32, 32, 0));
  std::vector<Mark> first = {inside(16, 16, 20, 20, {1, 1, 1, 1})}, second = {inside(16, 16, 10, 10, {0, 0, 0, 0.5f})};
  first[0].stroke = second[0].stroke = 1;
  test.input("marks", testing::records<Mark>(first), 0);
  test.input("marks", testing::records<Mark>(second), 1);
  Result result = test.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  CHECK(pixel_at(result, 8, 8) == std::vector{255});
  CHECK(pixel_at(result, 16, 16) == std::vector{128});
  test.input("marks", Value{}, 0);
  result = test.tick();
  REQUIRE(result.ok());
  CHECK(pixel_at(result, 8, 8) == std::vector{0});
  test.input("marks", Value{}, 1);
  result = test.tick();
  REQUIRE(result.ok());
  CHECK(pixel_at(result, 16, 16) == std::vector{0});
}

TEST_CASE("a crisp line is that of 64 places in each pixel, within 45 dB over a picture") {
  constexpr uint32_t kWidth = 256, kHeight = 144;
  for (const double width : {0.3, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0}) {
    const double ax = 10, ay = 10, bx = 50, by = 40; // the capsule of the rule
    const auto f = [](double number) { return static_cast<float>(number); };
    const Result result = painted(testing::image(Pixel::gray8, kWidth, kHeight, 0),
                                  {segment(f(ax), f(ay), f(bx), f(by), f(width), {1, 1, 1, 1})});
    double squares = 0;
    for (uint32_t y = 0; y < kHeight; ++y)
      for (uint32_t x = 0; x < kWidth; ++x) {
        const double off = pixel_at(result, x, y)[0] - 255 * covered_share(ax, ay, bx, by, width, x, y);
        squares += off * off;
      }
    const double decibel = 10 * std::log10(255.0 * 255 * kWidth * kHeight / squares);
    INFO("width ", width);
    CHECK(decibel >= 45);
  }
}

TEST_CASE("nothing is dropped in silence: 20,000 marks over one place, 65,536 in a list, and marks far to the right") {
  std::vector<Mark> marks(20'000, inside(16, 16, 20, 20, {1, 1, 1, 0.0001f}));
  const Value canvas = testing::image(Pixel::gray8, 64, 32, 0);
  CHECK(pixel_at(painted(canvas, marks), 16, 16)[0] ==
        doctest::Approx(255 * (1 - std::pow(1 - 0.0001, 20'000))).epsilon(0.01));
  marks.assign(65'536, inside(5, 5, 4, 4, {0, 0, 0, 1}));
  marks.back() = inside(50, 20, 6, 6, {1, 1, 1, 1});
  const Result last = painted(canvas, marks);
  CHECK(pixel_at(last, 50, 20) == std::vector{255});
  const Result wide = painted(testing::image(Pixel::gray8, 7680, 16, 0),
                              {segment(4090, 8, 7670, 8, 3, {1, 1, 1, 1}), inside(7676, 8, 4, 4, {1, 1, 1, 1})});
  for (const uint32_t x : {4091u, 4097u, 6000u, 7669u, 7676u}) CHECK(pixel_at(wide, x, 8) == std::vector{255});
  CHECK(pixel_at(painted(canvas, {}), 16, 16) == std::vector{0});
  CHECK(pixel_at(painted(testing::image(Pixel::rgb8, 1, 1, 0), {inside(0.5f, 0.5f, 1, 1, {1, 0, 1, 1})}), 0, 0) ==
        std::vector{255, 0, 255});
}

TEST_CASE(
    "marks that overlap on many rows and columns are blended as if each were painted alone, whatever their order in "
    "y") {
  std::mt19937 random(7);
  const auto any = [&](float most) { return static_cast<float>(random() % 1000) / 1000 * most; };
  std::vector<Mark> marks;
  for (int i = 0; i < 300; ++i) {
    Mark mark = i % 2 ? segment(any(200), any(120), any(200), any(120), any(9), {any(1), any(1), any(1), any(1)})
                      : inside(any(200), any(120), any(60), any(60), {any(1), any(1), any(1), any(1)});
    if (i % 2 == 0) {
      mark.width = i % 4 ? 0 : any(6);
      mark.at[4] = i % 3 ? 0 : any(6);
      mark.roundness = any(1);
      mark.fill[3] = i % 8 == 4 ? 0 : mark.fill[3];
    }
    marks.push_back(mark);
  }
  for (const std::string edge : {"crisp", "soft"}) {
    const Result together = painted(testing::image(Pixel::gray8, 200, 120, 40), marks, edge);
    // Each row by itself: the same marks, moved upwards into a canvas of one row.
    for (uint32_t y = 0; y < 120; y += 7) {
      std::vector<Mark> moved = marks;
      for (Mark& mark : moved) {
        mark.at[1] -= static_cast<float>(y);
        if (mark.kind == static_cast<int32_t>(MarkKind::segment)) mark.at[3] -= static_cast<float>(y);
      }
      const Result row = painted(testing::image(Pixel::gray8, 200, 1, 40), moved, edge);
      for (uint32_t x = 0; x < 200; ++x) REQUIRE(std::abs(pixel_at(row, x, 0)[0] - pixel_at(together, x, y)[0]) <= 1);
    }
  }
}

// ---- makers --------------------------------------------------------------------------------------------------------

namespace {

Result made(const char* type, const std::vector<std::pair<std::string, std::string>>& params,
            const std::vector<Box>& boxes, const std::vector<Point>& points) {
  TableTest test(builtin(type), {});
  for (const auto& [name, text] : params) test.set(name, text);
  if (!boxes.empty()) test.input("boxes", testing::records<Box>(boxes));
  if (!points.empty()) test.input("points", testing::records<Point>(points));
  Result result = test.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  return result;
}

Point point_of(float x, float y, float radius, uint32_t age, int64_t id) {
  Point point;
  point.x = x;
  point.y = y;
  point.radius = radius;
  point.age = age;
  point.id = id;
  return point;
}

} // namespace

TEST_CASE("marks.boxes: a box's own size, a fixed one, and sizes of radius and age") {
  const std::vector<Box> boxes = {{10, 20, 40, 30, 1, 2, 5}};
  const std::vector<Point> points = {point_of(50, 60, 8, 6, 1)};
  const auto sides = [&](const char* size) {
    const Result result = made("marks.boxes", {{"size", size}}, boxes, points);
    const std::span<const Mark> marks = result.records<Mark>("marks");
    REQUIRE(marks.size() == 2);
    CHECK((marks[0].at[0] == 30 && marks[0].at[1] == 35 && marks[1].at[0] == 50 && marks[1].at[1] == 60));
    return std::array{marks[0].at[2], marks[0].at[3], marks[1].at[2], marks[1].at[3]};
  };
  CHECK(sides("own") == std::array{40.0f, 30.0f, 16.0f, 16.0f});
  CHECK(sides("fixed") == std::array{20.0f, 20.0f, 20.0f, 20.0f});
  const auto radius = sides("radius"), age = sides("age");
  CHECK(radius[0] == doctest::Approx(std::sqrt(1200)));
  CHECK(radius[3] == doctest::Approx(16));
  CHECK(age[0] == doctest::Approx(std::sqrt(1200))); // a box has no age
  CHECK(age[2] == doctest::Approx(16 * (1 + 0.5 * std::log(7))));
}

TEST_CASE("marks.boxes: corners are eight lines of one stroke, with an inside below them") {
  const std::vector<Box> boxes = {{10, 20, 40, 20, 1, 2, 5}, {60, 20, 40, 20, 1, 2, 5}};
  const Result result = made("marks.boxes", {{"corners", "0.25"}, {"fill", "0.5"}, {"width", "3"}}, boxes, {});
  const std::span<const Mark> marks = result.records<Mark>("marks");
  REQUIRE(marks.size() == 18);
  CHECK((marks[0].kind == 1 && marks[0].width == 0 && marks[0].fill[3] == 0.5f && marks[0].stroke == -1));
  for (size_t m = 1; m < 9; ++m) {
    CHECK((marks[m].kind == 0 && marks[m].stroke == 0 && marks[m].width == 3 && marks[m + 9].stroke == 1));
    CHECK(std::hypot(marks[m].at[2] - marks[m].at[0], marks[m].at[3] - marks[m].at[1]) == doctest::Approx(5));
    CHECK(std::fabs(marks[m].at[0] - 30) == doctest::Approx(20));
    CHECK(std::fabs(marks[m].at[1] - 30) == doctest::Approx(10));
  }
  TableTest test(builtin("marks.boxes"), {{"corners", "0.25"}, {"roundness", "0.5"}});
  test.input("boxes", testing::records<Box>(boxes));
  CHECK(test.tick().error.find("corners alone are square") != std::string::npos);
}

TEST_CASE("makers: the id chooses the colour, a colour is for all, and without inputs the list is empty") {
  const std::vector<Point> points = {point_of(5, 5, 1, 0, 14), point_of(9, 5, 1, 0, -1)};
  const Result by_id = made("marks.dots", {{"opacity", "0.5"}}, {}, points);
  const Color wanted = draw::box_color(14);
  CHECK(by_id.records<Mark>("marks")[0].color[0] == doctest::Approx(wanted.r / 255.0));
  CHECK(by_id.records<Mark>("marks")[0].color[3] == 0.5f);
  const Result alike = made("marks.dots", {{"color", "#ff800080"}, {"opacity", "0.5"}}, {}, points);
  for (const Mark& mark : alike.records<Mark>("marks")) {
    CHECK((mark.color[0] == 1 && mark.color[2] == 0));
    CHECK(mark.color[3] == doctest::Approx(0.5 * 128 / 255));
  }
  CHECK(made("marks.dots", {}, {}, {}).records<Mark>("marks").empty());
  CHECK(made("marks.boxes", {}, {}, {}).records<Mark>("marks").empty());
  TableTest test(builtin("marks.dots"), {{"color", "red"}});
  test.input("points", testing::records<Point>(points));
  CHECK(test.tick().error.find("'red' is neither id nor \"#rrggbb\"") != std::string::npos);
}

TEST_CASE("makers: width, radius and opacity may change while a run goes on") {
  TableTest dots(builtin("marks.dots"), {{"shape", "plus"}});
  dots.input("points", testing::records<Point>({point_of(5, 5, 1, 0, 3)}));
  REQUIRE(dots.tick().ok());
  for (const auto& [name, text] : {std::pair{"width", "5"}, {"radius", "7"}, {"opacity", "0.25"}}) dots.set(name, text);
  const Result dot = dots.tick();
  const Mark& line = dot.records<Mark>("marks")[0];
  CHECK((line.width == 5 && line.at[2] - line.at[0] == 14 && line.color[3] == 0.25f));

  TableTest frames(builtin("marks.boxes"), {{"size", "fixed"}});
  frames.input("points", testing::records<Point>({point_of(5, 5, 1, 0, 3)}));
  REQUIRE(frames.tick().ok());
  for (const auto& [name, text] : {std::pair{"width", "5"}, {"side", "9"}, {"opacity", "0.25"}}) frames.set(name, text);
  const Result frame = frames.tick();
  const Mark& box = frame.records<Mark>("marks")[0];
  CHECK((box.width == 5 && box.at[2] == 9 && box.color[3] == 0.25f));
}

TEST_CASE("marks.dots: six shapes, as wide as their radius says") {
  for (const std::string shape : {"disc", "ring", "square", "diamond", "plus", "cross"})
    for (const std::string radius : {"6", "0"}) {
      const Result result = made("marks.dots", {{"shape", shape}, {"radius", radius}, {"color", "#ffffff"}}, {},
                                 {point_of(20.5f, 20.5f, 6, 0, 1)});
      std::vector<Mark> marks(result.records<Mark>("marks").begin(), result.records<Mark>("marks").end());
      CHECK(marks.size() == (shape == "plus" || shape == "cross" ? 2 : 1));
      const Result picture = painted(testing::image(Pixel::gray8, 41, 41, 0), marks);
      const auto at = [&](uint32_t x, uint32_t y) { return pixel_at(picture, x, y)[0]; };
      INFO(shape);
      CHECK((at(20, 20) == 255) == (shape != "ring"));
      const bool is_level = shape != "cross" && shape != "ring";
      CHECK((at(shape == "ring" ? 26 : 25, 20) > 200) == (shape != "cross"));
      CHECK((at(20, 16) > 200) == is_level);
      CHECK((at(24, 24) > 200) == (shape == "square" || shape == "cross" || shape == "disc" || shape == "ring"));
      CHECK(at(28, 20) == 0);
      CHECK(at(20, 12) == 0);
    }
}

TEST_CASE(
    "points.from_boxes: the place, the radius and the age; boxes without area or with NaN give none and are counted") {
  const struct {
    const char* at;
    float x, y;
  } table[] = {{"middle", 30, 40},    {"foot", 30, 60},        {"top_left", 10, 20},
               {"top_right", 50, 20}, {"bottom_left", 10, 60}, {"bottom_right", 50, 60}};
  for (const auto& row : table) {
    const Result result = made("points.from_boxes", {{"at", row.at}}, {{10, 20, 40, 40, 0.5f, 3, 7}}, {});
    const Point point = result.records<Point>("points")[0];
    CHECK((point.x == row.x && point.y == row.y && point.radius == 20 && point.score == 0.5f && point.label == 3 &&
           point.id == 7 && point.age == 0));
  }
  TableTest test(builtin("points.from_boxes"), {});
  const Box first = {0, 0, 4, 4, 1, -1, 1}, second = {9, 0, 4, 4, 1, -1, 2}, nameless = {9, 9, 4, 4, 1, -1, -1};
  const auto ages = [&](const std::vector<Box>& boxes) {
    test.input("boxes", testing::records<Box>(boxes));
    const Result result = test.tick();
    REQUIRE_MESSAGE(result.ok(), result.error);
    std::vector<uint32_t> found;
    for (const Point& point : result.records<Point>("points")) found.push_back(point.age);
    return found;
  };
  CHECK(ages({first, nameless}) == std::vector<uint32_t>{0, 0});
  CHECK(ages({first, second, nameless}) == std::vector<uint32_t>{1, 0, 0});
  CHECK(ages({second, {1, 1, NAN, 4, 1, -1, 9}, {1, 1, 0, 4, 1, -1, 9}}) == std::vector<uint32_t>{1});
  CHECK(ages({first, second}) == std::vector<uint32_t>{3, 2});
  CHECK(test.counts()["boxes_skipped"] == 2);
}

TEST_CASE("test.points: points stay in the picture, move, and are the same whenever they are asked for") {
  const auto points = [](const std::string& seed, int ticks) {
    TableTest test(builtin("test.points"), {{"points", "50"}, {"width", "80"}, {"height", "60"}, {"seed", seed}});
    Result result = test.tick();
    for (int t = 1; t < ticks; ++t) result = test.tick();
    REQUIRE_MESSAGE(result.ok(), result.error);
    return std::vector<Point>(result.records<Point>("points").begin(), result.records<Point>("points").end());
  };
  const std::vector<Point> early = points("1", 1), late = points("1", 100), other = points("2", 1);
  size_t moved = 0, differ = 0;
  for (size_t n = 0; n < 50; ++n) {
    for (const Point& point : {early[n], late[n]})
      CHECK((point.x >= 0 && point.x <= 80 && point.y >= 0 && point.y <= 60 && point.id == static_cast<int64_t>(n)));
    CHECK((early[n].age == 0 && late[n].age == 99 && early[n].radius == late[n].radius));
    moved += early[n].x != late[n].x;
    differ += early[n].x != other[n].x;
  }
  CHECK(moved > 40);
  CHECK(differ > 40);
}
