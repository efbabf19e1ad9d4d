// Parses shapes from text, the parameter of draw.shapes.
//
//   shapes   = shape { (";" | new line) shape }          empty ones do not count
//   shape    = "rectangle" point size | "circle" point length | "ellipse" point size
//            | "line" point point { point } | "arrow" point point | "polygon" point point point { point }
//              { option }
//   option   = "#rrggbb" | "#rrggbbaa" | "thickness=" number | "angle=" number | "filled"
//   point    = length "," length          size = length "x" length
//   length   = number [ "%" ]             of the picture's width or height; a circle's, of its smaller side
//
// Words are separated by spaces. A rectangle's point is its top left corner, and its size is its width and height. The
// point of a circle or an ellipse is its centre; one radius follows for a circle, two for an ellipse.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "handlers/draw/raster.h"

namespace millrace::handlers {

// Limits for shapes that are drawn on every picture; a drawing with more is better overlaid as a picture.
inline constexpr size_t kShapesMax = 256;
inline constexpr size_t kShapePointsMax = 1024;
// Larger than any picture.
inline constexpr double kShapeLengthMax = 65536;

enum class ShapeKind { rectangle, circle, ellipse, line, arrow, polygon };

// Pixels, or a percentage of a side of the picture.
struct ShapeLength {
  double value = 0;
  bool percent = false;
  double pixels(double side) const { return percent ? value * side / 100 : value; }
};
struct ShapePoint {
  ShapeLength x, y;
};

struct Shape {
  ShapeKind kind = ShapeKind::line;
  std::vector<ShapePoint> points; // circle, ellipse, rectangle: one
  ShapePoint size;                // rectangle: width and height; ellipse: the radii; circle: its radius, twice
  std::optional<Color> color;     // none: the handler's `color`
  std::optional<double> thickness;
  double angle_deg = 0; // rotation of a rectangle or ellipse about its centre, clockwise
  bool filled = false;
};

// Throws std::invalid_argument with the shape's number, its words and what was expected.
std::vector<Shape> parse_shapes(std::string_view text);

} // namespace millrace::handlers
