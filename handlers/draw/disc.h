// Discs with smooth edges, and the paths on which draw.marker moves one.
#pragma once

#include <cstdint>

#include "handlers/draw/raster.h"

namespace millrace::handlers {

// A place in a picture, in pixels; the middle of the first pixel is (0.5, 0.5).
struct Spot {
  double x = 0, y = 0;
};

// Paints a disc of at least half a pixel's radius, cut off at the picture's edges. A pixel is covered by as much as the
// edge is beyond its middle, plus a half, between 0 and 1: less than 0.1 from the share of its area that the disc has,
// for radii of 2 and more.
void draw_disc(const ImageSpan& picture, Spot centre, double radius, const Ink& ink);

// circle: around the middle, clockwise from the right. eight: a figure of eight that lies on its side, twice as fast
// upwards. line: from left to right and back, slower at the ends. still: in the middle.
enum class MarkerPath { circle, eight, line, still };

// Where the time is within a period that begins at 0: 0 up to 1, of any time. `period_ns` at least 1.
double phase_at(int64_t time_ns, int64_t period_ns);
// Where on its path the marker is, so that a disc of radius `margin` stays in the picture where it has the room.
Spot marker_spot(MarkerPath path, double phase, uint32_t width, uint32_t height, double margin);
// The radius at a phase of the pulse: largest at 0, `depth` of it smaller at a half.
double pulsed_radius(double radius, double depth, double phase);

} // namespace millrace::handlers
