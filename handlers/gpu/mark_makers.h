// Makes the marks of boxes and of points, for marks.boxes and marks.dots on CPU and GPU.
//
// A record always has the same number of marks, so that a kernel knows where they go. A record with NaN has marks with
// NaN, which draw.marks skips and counts.
#pragma once

#include <millrace/payload/marks.h>

#include <cmath>
#include <cstdint>

#include "handlers/gpu/box_marks.h"

namespace millrace::handlers::draw {

// How marks of a record are coloured: by its id or class, or all alike.
struct MarkColor {
  bool by_id;
  float color[4];
  float opacity;
};

MR_BOTH inline void color_mark(const MarkColor& style, const Box& key, Mark& mark) {
  const Color own = box_color(color_index(key));
  const float of_id[] = {own.r / 255.0f, own.g / 255.0f, own.b / 255.0f, 1};
  const float* const color = style.by_id ? of_id : style.color;
  for (uint32_t c = 0; c < 3; ++c) mark.color[c] = mark.fill[c] = color[c];
  mark.color[3] = color[3] * style.opacity;
  mark.fill[3] = 0;
}

MR_BOTH inline Box box_around(const Point& point) {
  return {point.x - point.radius,
          point.y - point.radius,
          2 * point.radius,
          2 * point.radius,
          point.score,
          point.label,
          point.id};
}

// ---- marks.boxes ---------------------------------------------------------------------------------------------------

// The source of a box's size. A point's own sides are those of its radius.
enum class BoxSize : uint32_t { own, fixed, radius, age };

struct BoxMarkStyle {
  BoxSize size;
  float side;      // pixels, for BoxSize::fixed
  float width;     // the line's
  float roundness; // 0…1
  float corners;   // the part of the shorter side that is drawn from each corner; 0: the whole outline
  float fill;      // opacity of the inside, beside that of the line
  MarkColor color;
};

MR_BOTH inline uint32_t marks_of_box(const BoxMarkStyle& style) {
  if (style.corners == 0) return 1;
  return style.fill > 0 ? 9 : 8;
}

// Makes the marks_of_box() marks of a box. `number` is its place in the list, `age` in ticks.
MR_BOTH inline void make_box_marks(const Box& box, uint32_t age, uint32_t number, const BoxMarkStyle& style,
                                   Mark* marks) {
  float width = box.width, height = box.height;
  if (style.size == BoxSize::fixed) width = height = style.side;
  if (style.size == BoxSize::radius || style.size == BoxSize::age) {
    width = height = sqrtf(box.width * box.height);
    if (style.size == BoxSize::age) width = height = width * (1 + 0.5f * logf(1 + static_cast<float>(age)));
  }
  const float x = box.x + box.width / 2, y = box.y + box.height / 2;
  Mark whole;
  color_mark(style.color, box, whole);
  whole.kind = static_cast<int32_t>(MarkKind::box);
  whole.at[0] = x;
  whole.at[1] = y;
  whole.at[2] = width;
  whole.at[3] = height;
  whole.width = style.corners == 0 ? style.width : 0;
  whole.roundness = style.roundness;
  whole.fill[3] = style.fill * whole.color[3];
  if (style.corners == 0 || style.fill > 0) *marks++ = whole;
  if (style.corners == 0) return;
  const float length = style.corners * fminf(width, height);
  for (uint32_t side = 0; side < 8; ++side) {
    const float right = side & 1 ? 1 : -1, down = side & 2 ? 1 : -1;
    const float corner_x = x + right * width / 2, corner_y = y + down * height / 2;
    Mark mark = whole;
    mark.kind = static_cast<int32_t>(MarkKind::segment);
    mark.stroke = static_cast<int32_t>(number);
    mark.at[0] = corner_x;
    mark.at[1] = corner_y;
    mark.at[2] = side & 4 ? corner_x : corner_x - right * length;
    mark.at[3] = side & 4 ? corner_y - down * length : corner_y;
    mark.width = style.width;
    mark.fill[3] = 0;
    *marks++ = mark;
  }
}

// ---- marks.dots ----------------------------------------------------------------------------------------------------

enum class DotShape : uint32_t { disc, ring, square, diamond, plus, cross };

struct DotStyle {
  DotShape shape;
  float radius; // pixels; 0: the point's own
  float width;  // the line's, in ring, plus and cross
  MarkColor color;
};

MR_BOTH inline uint32_t marks_of_dot(const DotStyle& style) {
  return style.shape == DotShape::plus || style.shape == DotShape::cross ? 2 : 1;
}

// Makes the marks_of_dot() marks of a point. `number` is its place in the list.
MR_BOTH inline void make_dot_marks(const Point& point, uint32_t number, const DotStyle& style, Mark* marks) {
  const float radius = style.radius > 0 ? style.radius : point.radius;
  Mark mark;
  color_mark(style.color, box_around(point), mark);
  mark.at[0] = point.x;
  mark.at[1] = point.y;
  if (style.shape == DotShape::disc) {
    mark.at[2] = point.x;
    mark.at[3] = point.y;
    mark.width = 2 * radius;
    *marks = mark;
    return;
  }
  if (style.shape == DotShape::plus || style.shape == DotShape::cross) {
    const float reach = style.shape == DotShape::plus ? radius : radius * 0.70710678f;
    const float turned = style.shape == DotShape::plus ? 0 : reach;
    mark.width = style.width;
    mark.stroke = static_cast<int32_t>(number);
    for (uint32_t line = 0; line < 2; ++line) {
      const float across = line == 0 ? reach : turned, down = line == 0 ? turned : -reach;
      mark.at[0] = point.x - across;
      mark.at[1] = point.y - down;
      mark.at[2] = point.x + across;
      mark.at[3] = point.y + down;
      *marks++ = mark;
    }
    return;
  }
  const bool is_ring = style.shape == DotShape::ring, is_diamond = style.shape == DotShape::diamond;
  mark.kind = static_cast<int32_t>(MarkKind::box);
  mark.at[2] = mark.at[3] = is_diamond ? radius * 1.41421356f : 2 * radius;
  mark.at[4] = is_diamond ? 0.78539816f : 0;
  mark.roundness = is_ring ? 1 : 0;
  mark.width = is_ring ? style.width : 0;
  mark.fill[3] = is_ring ? 0 : mark.color[3];
  *marks = mark;
}

// ---- marks.lines ---------------------------------------------------------------------------------------------------

struct LineStyle {
  float width;
  float length_max; // pixels, at which a line has faded; 0: none fades
  bool curved;      // else straight
  float offset;     // a curve's control point is so far beside the middle, by the line's length
  MarkColor color;
};

// Makes the mark of a link; one without length is a dot. It leads from the point with the lower id to the other one, or
// without ids from a to b.
MR_BOTH inline void make_line_mark(const Link& link, const Point* points, uint64_t count, const LineStyle& style,
                                   Mark& mark) {
  const auto at = [&](int32_t place) {
    Point nowhere;
    nowhere.x = nowhere.y = NAN;
    return place >= 0 && static_cast<uint64_t>(place) < count ? points[place] : nowhere;
  };
  const bool turned = link.id_a >= 0 && link.id_b >= 0 && link.id_b < link.id_a;
  Point from = at(turned ? link.b : link.a), to = at(turned ? link.a : link.b);
  if (!std::isfinite(from.x) || !std::isfinite(from.y)) from = to;
  if (!std::isfinite(to.x) || !std::isfinite(to.y)) to = from;
  Mark end;
  mark = Mark();
  color_mark(style.color, box_around(from), mark);
  color_mark(style.color, box_around(to), end);
  const float near = style.length_max > 0 ? fmaxf(1 - link.length / style.length_max, 0) : 1;
  mark.color[3] *= link.life * near;
  if (style.color.by_id)
    for (uint32_t c = 0; c < 4; ++c) mark.fill[c] = c < 3 ? end.color[c] : mark.color[3];
  mark.at[0] = from.x;
  mark.at[1] = from.y;
  mark.at[2] = to.x;
  mark.at[3] = to.y;
  mark.width = style.width;
  if (!style.curved || (from.x == to.x && from.y == to.y)) return;
  mark.kind = static_cast<int32_t>(MarkKind::curve);
  mark.at[4] = (from.x + to.x) / 2 - style.offset * (to.y - from.y);
  mark.at[5] = (from.y + to.y) / 2 + style.offset * (to.x - from.x);
}

} // namespace millrace::handlers::draw
