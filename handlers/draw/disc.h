// Discs with smooth edges, and the paths on which draw.marker moves one.
#pragma once

#include <cstdint>

#include "handlers/draw/raster.h"

namespace millrace::handlers {

// A place in a picture, in pixels; the middle of the first pixel is (0.5, 0.5).
struct Spot {
  double x = 0, y = 0;
};

// Paints a disc of at least half a pixel's radius, cut off at the picture's edges. A pixel's coverage is the distance
// of its centre from the edge, positive inside, plus a half, clamped to 0 … 1. For radii of 2 and more it differs by
// less than 0.1 from the share of the pixel's area that the disc covers.
void draw_disc(const ImageSpan& picture, Spot centre, double radius, const Ink& ink);

// circle: around the middle, clockwise from the right. eight: a figure of eight that lies on its side; it swings up and
// down twice a round. line: from left to right and back, slower at the ends. still: in the middle.
enum class MarkerPath { circle, eight, line, still };

// The phase of a time in its period, 0 … 1 with 1 excluded. Periods begin at time 0, and negative times have a phase
// too. `period_ns` is at least 1.
double phase_at(int64_t time_ns, int64_t period_ns);
// The marker's position on its path. A disc of radius `margin` around it stays in the picture if the picture is large
// enough.
Spot marker_spot(MarkerPath path, double phase, uint32_t width, uint32_t height, double margin);
// The radius at a phase of the pulse: `radius` at phase 0, and smaller by the fraction `depth` at phase 0.5.
double pulsed_radius(double radius, double depth, double phase);

} // namespace millrace::handlers
