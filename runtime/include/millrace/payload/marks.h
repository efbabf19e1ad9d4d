// Points that were found or followed, links between them, and marks: what draw.marks paints, one record a shape.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/payload/records.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// A point in pixels of the picture it belongs to. The middle of the picture's first pixel is (0.5, 0.5).
struct Point {
  static constexpr std::string_view kSchema = "millrace.Point";
  float x = 0, y = 0;
  float radius = 0;   // how large it is, in pixels; 0: not said
  float score = 0;    // 0…1
  int32_t label = -1; // class; -1: none
  uint32_t age = 0;   // ticks since its id was first seen
  int64_t id = -1;    // track; -1: none
  static std::vector<mr_field> fields() {
    return {field("x", &Point::x),         field("y", &Point::y),         field("radius", &Point::radius),
            field("score", &Point::score), field("label", &Point::label), field("age", &Point::age),
            field("id", &Point::id)};
  }
};

// Two points of a list that belong together, a before b.
struct Link {
  static constexpr std::string_view kSchema = "millrace.Link";
  int32_t a = 0, b = 0;         // places in the list of points, from 0
  int64_t id_a = -1, id_b = -1; // tracks of the points; -1: none
  float length = 0;             // pixels
  float life = 1;               // 0…1: below 1 while it comes or goes
  static std::vector<mr_field> fields() {
    return {field("a", &Link::a),       field("b", &Link::b),           field("id_a", &Link::id_a),
            field("id_b", &Link::id_b), field("length", &Link::length), field("life", &Link::life)};
  }
};

// The kinds of marks: values of Mark::kind.
enum class MarkKind : int32_t { segment = 0, box = 1, curve = 2 };

// A shape to be painted onto a picture, in its pixels. Colours are r, g, b, alpha, 0…1 each, of the picture's own space
// and not premultiplied; alpha 0 paints nothing.
struct Mark {
  static constexpr std::string_view kSchema = "millrace.Mark";
  int32_t kind = 0; // a MarkKind
  // Marks next to each other in a list with one number are one stroke: its coverage is the largest of its pieces, and
  // it is blended once. -1: a stroke of its own.
  int32_t stroke = -1;
  // A segment: x and y of its two ends, which may be one point. A box: x and y of its middle, width, height, and its
  // turn in radians, clockwise as y points down. A curve, which is a quadratic Bézier: x and y of its two ends, and of
  // its control point. The rest is 0.
  float at[6] = {};
  float width = 1;               // the line's, in pixels; 0: no line
  float roundness = 0;           // 0…1: the radius of a box's corners, divided by half of its shorter side
  float color[4] = {1, 1, 1, 1}; // the line's
  float fill[4] = {}; // the inside's. The colour of a segment or curve runs from `color` to `fill` if that has an alpha
  static std::vector<mr_field> fields() {
    return {field("kind", &Mark::kind),           field("at", &Mark::at),       field("width", &Mark::width),
            field("roundness", &Mark::roundness), field("color", &Mark::color), field("fill", &Mark::fill),
            field("stroke", &Mark::stroke)};
  }
};
static_assert(sizeof(Mark) <= 80, "many marks are read by each tile of a picture");

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
