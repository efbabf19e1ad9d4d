// Computes what a mark paints: the distance of a place to its shape, the coverage of a pixel and its colour.
//
// Rule: docs/reference/marks.md. The distance to a box is that of Inigo Quilez's rounded box. Single precision, apart
// from what is computed once for a mark.
#pragma once

#include <millrace/payload/marks.h>

#include <cmath>
#include <cstdint>

#include "handlers/gpu/box_marks.h"
#include "handlers/gpu/four_floats.h"

namespace millrace::handlers::draw {

// How draw.marks paints; kernels take it by value.
struct MarkStyle {
  bool soft; // edges: smooth over 3 pixels, or crisp
  bool adds; // colours are added, or laid over
  Pixel pixel;
};

enum class PaintedKind : uint8_t { segment, box, curve };

// A mark as it is painted on one canvas. Kernels load it four numbers at a time.
struct alignas(16) MarkShape {
  PixelArea area;     // the pixels that it may cover, within the canvas; empty if there are none
  float x, y;         // the first end of the segment or curve, the box's middle
  float dx, dy;       // the segment's direction; the cosine and the sine of the box's turn; the curve's first speed
  float length;       // the segment's
  float across, down; // half of the box's sides, less its corners' radius; how the curve's speed changes, by half
  float corner;       // radius of the box's corners; the number of the curve's pieces
  float half_line;    // distance from the path at which the line's edge begins (crisp) or has its middle (soft)
  float thinness;     // a crisp line below one pixel is that much fainter
  float reach;        // no pixel is covered that is further from the path, or from the box whose inside is seen
  PaintedKind kind;
  bool has_line;                      // anything of its line is to be seen
  bool has_fill;                      // the same of its inside
  bool runs;                          // a line whose colour runs from line_color to fill_color
  float line_color[4], fill_color[4]; // channels of the canvas, 0…255, and alpha 0…1 at the end

  MR_BOTH bool is_box() const { return kind == PaintedKind::box; }
  MR_BOTH bool is_curve() const { return kind == PaintedKind::curve; }
  MR_BOTH uint32_t pieces() const { return static_cast<uint32_t>(corner); } // a curve's: segments that stand for it
};

// The most marks of a list.
inline constexpr uint64_t kMarksMax = 65'536;
// Marks beyond are skipped and counted.
inline constexpr float kMarkPlaceMax = 1e6f;
// A curve and the segments that stand for it are so near to each other, in pixels.
inline constexpr double kCurveTolerance = 0.04;
// Half of the range over which a soft edge rises.
inline constexpr float kSoftSegment = 1.5f, kSoftBox = 1;

// False for a mark that is skipped and counted: of an unknown kind, with NaN in it, or beyond any picture.
MR_BOTH inline bool is_sound(const Mark& mark) {
  const auto sane = [](float number) { return fabsf(number) <= kMarkPlaceMax; }; // false for NaN
  bool sound = sane(mark.width) && sane(mark.roundness);
  for (uint32_t c = 0; c < 4; ++c) sound = sound && sane(mark.color[c]) && sane(mark.fill[c]);
  for (uint32_t i = 0; i < 4; ++i) sound = sound && sane(mark.at[i]);
  if (mark.kind == static_cast<int32_t>(MarkKind::segment)) return sound;
  if (mark.kind == static_cast<int32_t>(MarkKind::curve)) return sound && sane(mark.at[4]) && sane(mark.at[5]);
  return sound && mark.kind == static_cast<int32_t>(MarkKind::box) && sane(mark.at[4]) && mark.at[2] >= 0 &&
         mark.at[3] >= 0;
}

// Computes the channels of a colour as the canvas has them, and its alpha. Gray is the luma of BT.601.
MR_BOTH inline void lay_out_color(const float (&color)[4], Pixel pixel, float (&to)[4]) {
  const float r = 255 * clamped(color[0], 0, 1), g = 255 * clamped(color[1], 0, 1), b = 255 * clamped(color[2], 0, 1);
  const bool is_gray = pixel == Pixel::gray8, is_reversed = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
  to[0] = is_gray ? 0.299f * r + 0.587f * g + 0.114f * b : is_reversed ? b : r;
  to[1] = is_gray ? 0 : g;
  to[2] = is_gray ? 0 : is_reversed ? r : b;
  to[3] = clamped(color[3], 0, 1);
}

// A place on a curve or segment.
struct LinePlace {
  float x, y;
};

MR_BOTH inline void lay_out_segment(const LinePlace& from, const LinePlace& to, MarkShape& shape) {
  const double length_x = double{to.x} - from.x, length_y = double{to.y} - from.y;
  const double length = sqrt(length_x * length_x + length_y * length_y);
  shape.x = from.x;
  shape.y = from.y;
  shape.dx = length > 0 ? static_cast<float>(length_x / length) : 1; // a disc has any direction
  shape.dy = length > 0 ? static_cast<float>(length_y / length) : 0;
  shape.length = static_cast<float>(length);
}

// The pixels of a canvas whose middles are nearer to this area than the reach; empty if there are none.
MR_BOTH inline PixelArea area_within(double left, double top, double right, double bottom, double reach, uint32_t width,
                                     uint32_t height) {
  const auto first = [](double place) { return static_cast<int32_t>(fmax(ceil(place - 0.5), 0.0)); };
  const auto end = [](double place, uint32_t most) {
    return static_cast<int32_t>(fmin(floor(place - 0.5) + 1, double(most)));
  };
  const PixelArea area = {first(left - reach), first(top - reach), end(right + reach, width),
                          end(bottom + reach, height)};
  return area.right <= area.left || area.bottom <= area.top ? PixelArea{} : area;
}

// Lays out a curve p + t·speed + t²·bend, for t from 0 to 1. The middle of a piece is |bend|/(4·pieces²) from its
// chord, which is the most of any place.
MR_BOTH inline void lay_out_curve(const Mark& mark, MarkShape& shape) {
  const double speed_x = 2 * (double{mark.at[4]} - mark.at[0]), speed_y = 2 * (double{mark.at[5]} - mark.at[1]);
  const double bend_x = double{mark.at[2]} - mark.at[0] - speed_x, bend_y = double{mark.at[3]} - mark.at[1] - speed_y;
  shape.dx = static_cast<float>(speed_x);
  shape.dy = static_cast<float>(speed_y);
  shape.across = static_cast<float>(bend_x);
  shape.down = static_cast<float>(bend_y);
  const double bend = sqrt(bend_x * bend_x + bend_y * bend_y);
  shape.corner = static_cast<float>(ceil(fmax(sqrt(bend / (4 * kCurveTolerance)), 1.0)));
}

// Describes a sound mark on a canvas of this size.
MR_BOTH inline MarkShape shape_of(const Mark& mark, const MarkStyle& style, uint32_t width, uint32_t height) {
  MarkShape shape{};
  shape.kind = mark.kind == static_cast<int32_t>(MarkKind::box)     ? PaintedKind::box
               : mark.kind == static_cast<int32_t>(MarkKind::curve) ? PaintedKind::curve
                                                                    : PaintedKind::segment;
  lay_out_color(mark.color, style.pixel, shape.line_color);
  lay_out_color(mark.fill, style.pixel, shape.fill_color);
  shape.runs = !shape.is_box() && shape.fill_color[3] > 0;
  shape.has_line = mark.width > 0 && (shape.line_color[3] > 0 || shape.runs);
  shape.has_fill = shape.is_box() && shape.fill_color[3] > 0;
  shape.half_line = style.soft ? mark.width / 2 : 0.5f + larger(mark.width, 1) / 2;
  shape.thinness = style.soft ? 1 : smaller(mark.width, 1);
  shape.x = mark.at[0];
  shape.y = mark.at[1];
  const float softness = shape.is_box() ? kSoftBox : kSoftSegment;
  shape.reach = shape.has_line ? shape.half_line + (style.soft ? softness : 0) : 0;
  if (shape.has_fill) shape.reach = larger(shape.reach, 0.5f);
  const double reach = shape.reach;
  double left, right, top, bottom; // beyond single precision, so that a pixel far off is not lost
  if (shape.is_box()) {
    const double half_width = mark.at[2] / 2.0, half_height = mark.at[3] / 2.0;
    const double corner = clamped(mark.roundness, 0, 1) * fmin(half_width, half_height);
    const bool is_upright = mark.at[4] == 0; // most are
    const double cosine = is_upright ? 1 : cos(double{mark.at[4]}), sine = is_upright ? 0 : sin(double{mark.at[4]});
    shape.dx = static_cast<float>(cosine);
    shape.dy = static_cast<float>(sine);
    shape.corner = static_cast<float>(corner);
    shape.across = static_cast<float>(half_width - corner);
    shape.down = static_cast<float>(half_height - corner);
    const double reach_x = fabs(cosine) * (half_width - corner) + fabs(sine) * (half_height - corner) + corner;
    const double reach_y = fabs(sine) * (half_width - corner) + fabs(cosine) * (half_height - corner) + corner;
    left = double{shape.x} - reach_x;
    right = double{shape.x} + reach_x;
    top = double{shape.y} - reach_y;
    bottom = double{shape.y} + reach_y;
  } else if (shape.is_curve()) {
    lay_out_curve(mark, shape);
    // Within the curve a side turns where its speed is 0.
    const auto side = [](double from, double to, double speed, double bend, double& low, double& high) {
      low = fmin(from, to);
      high = fmax(from, to);
      const double turns = bend != 0 ? -speed / (2 * bend) : 0;
      if (!(turns > 0 && turns < 1)) return;
      const double place = from + turns * (speed + turns * bend);
      low = fmin(low, place);
      high = fmax(high, place);
    };
    side(mark.at[0], mark.at[2], shape.dx, shape.across, left, right);
    side(mark.at[1], mark.at[3], shape.dy, shape.down, top, bottom);
  } else {
    lay_out_segment({mark.at[0], mark.at[1]}, {mark.at[2], mark.at[3]}, shape);
    left = fmin(double{mark.at[0]}, double{mark.at[2]});
    right = fmax(double{mark.at[0]}, double{mark.at[2]});
    top = fmin(double{mark.at[1]}, double{mark.at[3]});
    bottom = fmax(double{mark.at[1]}, double{mark.at[3]});
  }
  if (!shape.has_line && !shape.has_fill) return shape;
  shape.area = area_within(left, top, right, bottom, reach, width, height);
  return shape;
}

// A place as a segment sees it: how far along its line it is, and how far aside, negative on one side. A Number is a
// float; on the CPU also four of them, of places in one row.
template <class Number>
MR_INTO_LOOPS Number distance_along(const MarkShape& shape, Number x, float y) {
  return (x - shape.x) * shape.dx + (y - shape.y) * shape.dy;
}
template <class Number>
MR_INTO_LOOPS Number distance_aside(const MarkShape& shape, Number x, float y) {
  return (x - shape.x) * shape.dy - (y - shape.y) * shape.dx;
}

// The distance from a place to a segment.
template <class Number>
MR_INTO_LOOPS Number distance_to_segment(const MarkShape& shape, Number x, float y) {
  const Number along = distance_along(shape, x, y), aside = distance_aside(shape, x, y);
  // Before the first end and beyond the second the end itself is the nearest place.
  const Number beyond = larger(larger(-along, along - shape.length), 0);
  return square_root(beyond * beyond + aside * aside);
}

// The place that is so far along a curve, 0…1.
MR_BOTH inline LinePlace place_on_curve(const MarkShape& shape, float share) {
  return {shape.x + share * (shape.dx + share * shape.across), shape.y + share * (shape.dy + share * shape.down)};
}

// Makes the segment that stands for a piece of a curve, from 0 to pieces() − 1. Its colours are those of that part.
MR_BOTH inline MarkShape piece_of(const MarkShape& curve, uint32_t piece) {
  const float each = 1 / curve.corner, share = static_cast<float>(piece) * each,
              next = static_cast<float>(piece + 1) * each;
  const LinePlace from = place_on_curve(curve, share), to = place_on_curve(curve, next);
  const float length_x = to.x - from.x, length_y = to.y - from.y;
  const float length = sqrtf(length_x * length_x + length_y * length_y);
  MarkShape shape = curve;
  shape.kind = PaintedKind::segment;
  shape.x = from.x;
  shape.y = from.y;
  shape.dx = length > 0 ? length_x / length : 1;
  shape.dy = length > 0 ? length_y / length : 0;
  shape.length = length;
  shape.across = shape.down = shape.corner = 0;
  if (!curve.runs) return shape;
  for (uint32_t c = 0; c < 4; ++c) {
    const float run = curve.fill_color[c] - curve.line_color[c];
    shape.line_color[c] = curve.line_color[c] + run * share;
    shape.fill_color[c] = curve.line_color[c] + run * next;
  }
  return shape;
}

// The distance from a place to a few chords of a curve, less what the curve may be beside them.
MR_BOTH inline float distance_near_curve(const MarkShape& curve, float x, float y) {
  const float chords = smaller(curve.corner, 8), each = 1 / chords;
  float nearest = INFINITY;
  LinePlace from = place_on_curve(curve, 0);
  for (float chord = 1; chord <= chords; ++chord) {
    const LinePlace to = place_on_curve(curve, chord * each);
    const float length_x = to.x - from.x, length_y = to.y - from.y, px = x - from.x, py = y - from.y;
    const float square = length_x * length_x + length_y * length_y;
    const float along = square > 0 ? clamped((px * length_x + py * length_y) / square, 0, 1) : 0;
    const float away_x = px - along * length_x, away_y = py - along * length_y;
    nearest = smaller(nearest, away_x * away_x + away_y * away_y);
    from = to;
  }
  return sqrtf(nearest) - sqrtf(curve.across * curve.across + curve.down * curve.down) * (each * each / 4);
}

// How far along a segment the place nearest to another one is, 0…1.
template <class Number>
MR_INTO_LOOPS Number share_of_segment(const MarkShape& shape, Number x, float y) {
  return shape.length > 0 ? clamped(distance_along(shape, x, y) / shape.length, 0, 1) : Number{};
}

// Computes the colour of a segment whose colour runs, at a place.
MR_BOTH inline void run_color(const MarkShape& shape, float x, float y, float (&color)[4]) {
  const float share = share_of_segment(shape, x, y);
  for (uint32_t c = 0; c < 4; ++c) color[c] = shape.line_color[c] + (shape.fill_color[c] - shape.line_color[c]) * share;
}

// The distance from a place to a box's outline; negative inside.
template <class Number>
MR_INTO_LOOPS Number distance_to_box(const MarkShape& shape, Number x, float y) {
  const Number px = x - shape.x;
  const float py = y - shape.y;
  const Number across = absolute(shape.dx * px + shape.dy * py) - shape.across;
  const Number down = absolute(shape.dx * py - shape.dy * px) - shape.down;
  const Number out_x = larger(across, 0), out_y = larger(down, 0);
  return square_root(out_x * out_x + out_y * out_y) + smaller(larger(across, down), 0) - shape.corner;
}

// The share of a pixel that a line covers whose path is so far from the pixel's middle.
template <class Number>
MR_INTO_LOOPS Number line_coverage(const MarkShape& shape, bool soft, Number distance) {
  if (!soft) return clamped(shape.half_line - distance, 0, 1) * shape.thinness;
  const float softness = shape.is_box() ? kSoftBox : kSoftSegment;
  const Number share = clamped((distance - shape.half_line + softness) / (2 * softness), 0, 1);
  return 1.0f - share * share * (3.0f - 2.0f * share);
}

// The share of a pixel that the inside of an outline covers that is so far away; negative inside.
template <class Number>
MR_INTO_LOOPS Number fill_coverage(Number distance) {
  return clamped(0.5f - distance, 0, 1);
}

// True if the mark may cover a pixel whose middle is at most so far from a place.
MR_BOTH inline bool may_cover(const MarkShape& shape, float x, float y, float radius) {
  // The distances of two places to the shape differ by no more than the places are apart. The rest is for rounding.
  const float near = shape.reach + radius + 0.01f +
                     1e-6f * (fabsf(x - shape.x) + fabsf(y - shape.y) + shape.length + fabsf(shape.across) +
                              fabsf(shape.down) + (shape.is_curve() ? fabsf(shape.dx) + fabsf(shape.dy) : 0));
  if (shape.is_curve()) return distance_near_curve(shape, x, y) <= near;
  if (!shape.is_box()) return distance_to_segment(shape, x, y) <= near;
  const float distance = distance_to_box(shape, x, y);
  return (shape.has_fill ? distance : fabsf(distance)) <= near;
}

// The same for any pixel of an area, which is not empty.
MR_BOTH inline bool touches(const MarkShape& shape, const PixelArea& area) {
  const float across = static_cast<float>(area.right - area.left - 1) / 2;
  const float down = static_cast<float>(area.bottom - area.top - 1) / 2;
  return shape.area.meets(area) &&
         may_cover(shape, static_cast<float>(area.left) + 0.5f + across, static_cast<float>(area.top) + 0.5f + down,
                   sqrtf(across * across + down * down));
}

// True if the inside and the line of a stroke are blended as one: they have one colour.
MR_BOTH inline bool same_color(const float* a, const float* b) {
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

// Calls `blend(color, alpha)` for a pixel of a stroke with several pieces, whose line and inside have these alphas.
template <class Blend>
MR_BOTH void blend_stroke(const float* line_color, float line, const float* fill_color, float fill,
                          const Blend& blend) {
  if (fill > 0 && line > 0 && same_color(line_color, fill_color)) return blend(line_color, larger(line, fill));
  if (fill > 0) blend(fill_color, fill);
  if (line > 0) blend(line_color, line);
}

} // namespace millrace::handlers::draw
