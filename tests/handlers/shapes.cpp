// Shapes as text, what they cover against sixteen by sixteen samples a pixel, and draw.shapes as a handler.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "builtin.h"
#include "handlers/draw/shape_mask.h"
#include "handlers/draw/shape_text.h"
#include "ink.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;

namespace {

// Shapes in white on a black gray picture.
Picture drawn(const std::string& text, uint32_t width, uint32_t height, double thickness = 1) {
  Picture picture(Pixel::gray8, width, height);
  for (const Shape& shape : parse_shapes(text))
    ShapeMask(shape, width, height, thickness).draw(picture.span(), ink_of(shape.color.value_or(kWhite), Pixel::gray8));
  return picture;
}

// Rows as text: '#' white, '+' in between, '.' black.
std::string rows_of(const Picture& picture) {
  std::string text;
  for (uint32_t y = 0; y < picture.view().height(); ++y) {
    for (uint32_t x = 0; x < picture.view().width(); ++x) {
      const uint8_t value = picture.view().row(y)[x];
      text += value == 255 ? '#' : value > 0 ? '+' : '.';
    }
    text += '\n';
  }
  return text;
}

struct Difference {
  double worst = 0, area = 0, drawn_area = 0;
};
// Between a drawn picture and what `inside` says about 256 places in every pixel.
Difference difference(const Picture& picture, const std::function<bool(double x, double y)>& inside) {
  Difference result;
  for (uint32_t y = 0; y < picture.view().height(); ++y)
    for (uint32_t x = 0; x < picture.view().width(); ++x) {
      int hits = 0;
      for (int i = 0; i < 256; ++i) hits += inside(x + (i % 16 - 7.5) / 16, y + (i / 16 - 7.5) / 16);
      const double covered = picture.view().row(y)[x] / 255.0;
      result.worst = std::max(result.worst, std::abs(covered - hits / 256.0));
      result.area += hits / 256.0;
      result.drawn_area += covered;
    }
  return result;
}

double distance_to_segment(double x, double y, double ax, double ay, double bx, double by) {
  const double t = std::clamp(
      ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) * (bx - ax) + (by - ay) * (by - ay)), 0.0, 1.0);
  return std::hypot(x - ax - t * (bx - ax), y - ay - t * (by - ay));
}

std::string refusal(const std::string& text) {
  try {
    parse_shapes(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_CASE("shapes are read with their options in any order, one a line or behind semicolons") {
  const auto shapes = parse_shapes(
      "rectangle 10,-20.5 30%x40 #ff0000 ; circle 50%,25% 10% filled thickness=3\n\n  ellipse 1,2 3x4 angle=-30;;\r\n"
      "line 0,0 1,1 2,0;arrow #00ff0080 5,6 7,8; polygon 0,0 9,0 9,9 filled;");
  REQUIRE(shapes.size() == 6);
  CHECK(shapes[0].kind == ShapeKind::rectangle);
  CHECK(shapes[0].points[0].y.value == -20.5);
  CHECK(shapes[0].size.x.pixels(200) == 60);
  CHECK(shapes[0].size.y.pixels(200) == 40);
  CHECK(shapes[0].color == Color{255, 0, 0});
  CHECK_FALSE(shapes[0].filled);
  CHECK(shapes[1].points[0].x.pixels(640) == 320);
  CHECK(shapes[1].size.x.percent);
  CHECK(shapes[1].filled);
  CHECK(shapes[1].thickness == 3);
  CHECK_FALSE(shapes[1].color);
  CHECK(shapes[2].angle_deg == -30);
  CHECK(shapes[3].points.size() == 3);
  CHECK(shapes[4].color == Color{0, 255, 0, 128});
  CHECK(shapes[5].kind == ShapeKind::polygon);
  CHECK(parse_shapes(" ;\n; ").empty());
}

TEST_CASE("a shape that cannot be read is refused with its number, its words and what was expected") {
  CHECK(refusal("line 0,0 1,1; circel 3,4 5") ==
        "shape 2 ('circel 3,4 5'): there is no shape 'circel'; there are rectangle, circle, ellipse, line, arrow and "
        "polygon");
  CHECK(
      refusal("circle 3,4") ==
      "shape 1 ('circle 3,4'): something is missing; expected circle X,Y RADIUS, then #rrggbb, thickness=N or filled");
  CHECK(refusal("rectangle 3,4 20") ==
        "shape 1 ('rectangle 3,4 20'): '20' is no size; expected rectangle X,Y WIDTHxHEIGHT, then #rrggbb, "
        "thickness=N, angle=N or filled");
  CHECK(
      refusal("arrow 1,2 3,4 5,6") ==
      "shape 1 ('arrow 1,2 3,4 5,6'): '5,6' does not belong there; expected arrow X,Y X,Y, then #rrggbb, thickness=N");
  for (const char* wrong : {"rectangle",
                            "rectangle 3,4",
                            "rectangle 3,4 -5x6",
                            "rectangle 3,4 5x6x7",
                            "circle 1,2 3 4",
                            "circle 1;2 3",
                            "line 1,1",
                            "line 1,1 2,2 filled",
                            "arrow 1,1",
                            "arrow 1,1 2,2 angle=3",
                            "polygon 1,1 2,2",
                            "line 1,1 2,x",
                            "line 1,1 2,",
                            "line 1,1 nan,2",
                            "line 1,1 inf,2",
                            "line 1,1 1e9,2",
                            "line 1,1 2,2 #12",
                            "line 1,1 2,2 red",
                            "line 1,1 2,2 thickness=0",
                            "line 1,1 2,2 thickness=",
                            "ellipse 1,1 2x2 angle=",
                            "circle 1,1 2 angle=4",
                            "circle 1,1 %",
                            "circle 1 2 3",
                            "line\t1,1\t2,2\tthickness = 3"}) {
    INFO(wrong);
    CHECK(refusal(wrong).starts_with("shape 1 ('"));
  }
}

TEST_CASE("shapes and their points are bounded") {
  std::string many, line = "line";
  for (size_t i = 0; i <= kShapesMax; ++i) many += "circle 1,1 1;";
  CHECK(refusal(many) == "there are more than 256 shapes");
  for (size_t i = 0; i < kShapePointsMax; ++i) line += " 1,1";
  CHECK(refusal(line) == "");
  CHECK(refusal(line + "; line 1,1 2,2") == "the shapes have more than 1024 points");
}

TEST_CASE("a rectangle covers whole pixels, and its frame lies inside") {
  CHECK(rows_of(drawn("rectangle 1,1 5x3", 8, 5)) == "........\n.#####..\n.#...#..\n.#####..\n........\n");
  CHECK(rows_of(drawn("rectangle 1,1 5x3 filled", 8, 5)) == "........\n.#####..\n.#####..\n.#####..\n........\n");
  CHECK(rows_of(drawn("rectangle 0,0 7x5 thickness=2", 8, 5)) == "#######.\n#######.\n##...##.\n#######.\n#######.\n");
  CHECK(rows_of(drawn("rectangle 1,1 3x3 thickness=9", 5, 5)) == ".....\n.###.\n.###.\n.###.\n.....\n");
  CHECK(rows_of(drawn("rectangle 1,1 0x3", 4, 5)) == rows_of(Picture(Pixel::gray8, 4, 5)));
}

TEST_CASE("a thin line through the middles of pixels covers them and no others, its ends by half") {
  CHECK(rows_of(drawn("line 1,1 5,1", 8, 3)) == "........\n.#####..\n........\n");
  CHECK(rows_of(drawn("line 2,0 2,2", 5, 4)) == "..#..\n..#..\n..#..\n.....\n");
}

TEST_CASE("percentages are of the picture's sides, a circle's radius of the smaller one") {
  CHECK(rows_of(drawn("rectangle 25%,25% 50%x50% filled", 8, 4)) == "........\n..####..\n..####..\n........\n");
  const Picture relative = drawn("circle 50%,50% 25% filled", 80, 40),
                absolute = drawn("circle 40,20 10 filled", 80, 40);
  CHECK(same_pixels(relative.view(), absolute.view()));
}

TEST_CASE("round and slanted edges cover what 256 samples a pixel say") {
  const double turn = 30 * std::numbers::pi / 180;
  const auto in_ellipse = [&](double x, double y) {
    const double u = (x - 50) * std::cos(turn) + (y - 40) * std::sin(turn);
    const double v = (y - 40) * std::cos(turn) - (x - 50) * std::sin(turn);
    return u * u / (35 * 35) + v * v / (20 * 20) <= 1;
  };
  struct Case {
    std::string text;
    std::function<bool(double, double)> inside;
    double worst;
  };
  const std::vector<Case> cases = {
      {"circle 50,40 30.3 filled", [](double x, double y) { return std::hypot(x - 50, y - 40) <= 30.3; }, 0.05},
      {"circle 50.4,40 25 thickness=4",
       [](double x, double y) { return std::abs(std::hypot(x - 50.4, y - 40) - 25) <= 2; }, 0.05},
      {"circle 20,70 60 thickness=1", // partly outside
       [](double x, double y) { return std::abs(std::hypot(x - 20, y - 70) - 60) <= 0.5; }, 0.09},
      {"ellipse 50,40 35x20 angle=30 filled", in_ellipse, 0.06},
      {"line 10,12 85,60 thickness=7",
       [](double x, double y) { return distance_to_segment(x, y, 10, 12, 85, 60) <= 3.5; }, 0.06},
      {"line 10,60 50,12 90,60 thickness=6", // an inner corner
       [](double x, double y) {
         return std::min(distance_to_segment(x, y, 10, 60, 50, 12), distance_to_segment(x, y, 50, 12, 90, 60)) <= 3;
       },
       0.2},
      {"polygon 10,10 90,30 30,70 filled", // two sharp corners
       [](double x, double y) {
         const auto side = [&](double ax, double ay, double bx, double by) {
           return (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= 0;
         };
         return side(10, 10, 90, 30) && side(90, 30, 30, 70) && side(30, 70, 10, 10);
       },
       0.4},
      {"rectangle 30,20 41x31 angle=45 filled", // centre 50, 35
       [](double x, double y) {
         const double u = (x - 50 + y - 35) / std::sqrt(2), v = (y - 35 - x + 50) / std::sqrt(2);
         return std::abs(u) <= 20.5 && std::abs(v) <= 15.5;
       },
       0.25}};
  for (const Case& c : cases) {
    const Difference found = difference(drawn(c.text, 100, 80), c.inside);
    INFO(c.text << ": area " << found.drawn_area << ", wanted " << found.area);
    CHECK(found.worst <= c.worst);
    CHECK(std::abs(found.drawn_area - found.area) <= 0.005 * found.area + 0.3);
  }
}

TEST_CASE("an arrow is its line and a head that ends at the tip") {
  const std::string rows = rows_of(drawn("arrow 2,10 40,10 thickness=1", 50, 21));
  const auto row = [&](size_t y) { return rows.substr(y * 51, 50); };
  CHECK(row(10).find_first_not_of('.') == 2);
  CHECK(row(10).find_last_not_of('.') == 40);
  CHECK(row(9).find('#') >= 31); // the head is nine pixels long
  CHECK(row(6).find_first_of("#+") >= 30);
  CHECK(row(6).find_first_of("#+") <= 32);
  CHECK(row(4).find_first_of("#+") == std::string::npos);
  CHECK(rows_of(drawn("arrow 2,2 2,2 thickness=3", 5, 5)).find('#') != std::string::npos);
}

TEST_CASE("a polygon that crosses itself is filled by the even-odd rule") {
  // A five-pointed star in one stroke: its middle is outside.
  const Picture star = drawn("polygon 50,5 79,92 4,38 96,38 21,92 filled", 101, 101);
  CHECK(star.view().row(50)[50] == 0);
  CHECK(star.view().row(15)[50] == 255);
  CHECK(star.view().row(42)[20] == 255);
}

TEST_CASE("half-transparent shapes are blended once where line and head overlap, and later ones lie above") {
  const Picture arrow = drawn("arrow 2,20 60,20 thickness=8 #ffffff80", 70, 40);
  for (uint32_t y = 0; y < 40; ++y)
    for (uint32_t x = 0; x < 70; ++x) CHECK_MESSAGE(arrow.view().row(y)[x] <= 128, x << ", " << y);
  const Picture both = drawn("rectangle 0,0 6x4 filled; rectangle 2,1 2x2 filled #000000", 6, 4);
  CHECK(rows_of(both) == "######\n##..##\n##..##\n######\n");
}

TEST_CASE("what lies outside the picture is cut off, however far it reaches") {
  CHECK(rows_of(drawn("rectangle -60000,-60000 60003x60002 filled", 5, 4)) == "###..\n###..\n.....\n.....\n");
  CHECK(rows_of(drawn("circle 60000,60000 100 filled; line -50,-50 -10,-3; polygon 9,9 20,9 20,20", 5, 4)) ==
        rows_of(Picture(Pixel::gray8, 5, 4)));
  CHECK(rows_of(drawn("circle 2,2 65536 filled", 5, 4)) == "#####\n#####\n#####\n#####\n");
}

TEST_CASE("draw.shapes draws in every format, in its input's memory or a copy, in the colours that it was given") {
  for (Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})
    for (bool in_place : {false, true}) {
      TableTest shapes(builtin("draw.shapes"),
                       {{"shapes", "rectangle 2,2 4x4 filled #0a0b0c; circle 10,10 2 filled"}, {"color", "#fafbfc"}});
      shapes.allow_in_place(in_place);
      shapes.input("video", testing::image(pixel, 16, 16, 77));
      const Result result = shapes.tick();
      REQUIRE(result.ok());
      const ImageView picture = result.image("video");
      const uint32_t size = bytes_per_pixel(pixel);
      const bool swapped = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
      const uint8_t *dark = picture.row(3) + 3 * size, *bright = picture.row(10) + 10 * size;
      INFO(name_of(pixel));
      CHECK(picture.row(1)[size] == 77);
      if (size == 1) {
        CHECK(dark[0] == 11);
        CHECK(bright[0] == 251);
      } else {
        CHECK(dark[swapped ? 2 : 0] == 10);
        CHECK(dark[1] == 11);
        CHECK(dark[swapped ? 0 : 2] == 12);
        CHECK(bright[1] == 251);
      }
    }
}

TEST_CASE("draw.shapes draws on a smaller picture than planned as on the planned one, cut off") {
  TableTest shapes(builtin("draw.shapes"), {{"shapes", "line 0%,50% 100%,50% ; circle 8,5 3"}});
  shapes.bounded();
  shapes.input("video", testing::image(Pixel::gray8, 40, 20));
  const Result whole = shapes.tick();
  shapes.input("video", testing::image(Pixel::gray8, 9, 7));
  const Result part = shapes.tick();
  REQUIRE(part.ok());
  for (uint32_t y = 0; y < 7; ++y) CHECK(std::memcmp(part.image("video").row(y), whole.image("video").row(y), 9) == 0);
}

TEST_CASE("draw.shapes without shapes leaves the picture, and with wrong ones is refused when the plan is made") {
  TableTest none(builtin("draw.shapes"));
  none.input("video", testing::image(Pixel::rgb8, 4, 4, 9));
  CHECK(none.tick().image("video").row(3)[11] == 9);
  TableTest wrong(builtin("draw.shapes"), {{"shapes", "square 1,1 4"}});
  wrong.input("video", testing::image(Pixel::rgb8, 4, 4));
  CHECK(wrong.start() == MR_ERROR);
  CHECK(wrong.error().starts_with("shape 1 ('square 1,1 4'): there is no shape 'square'"));
  TableTest color(builtin("draw.shapes"), {{"color", "blue"}});
  color.input("video", testing::image(Pixel::rgb8, 4, 4));
  CHECK(color.start() == MR_ERROR);
}
