// Draws discs row by row: the inside of a row is one span, and only the pixels that the edge crosses are computed one
// by one.
#include "handlers/draw/disc.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace millrace::handlers {
namespace {

// Half the width of a circle at distance `dy` from its centre; below 0 if the circle does not reach that far.
double half_chord(double radius, double dy) {
  return radius <= std::abs(dy) ? -1 : std::sqrt(radius * radius - dy * dy);
}

// The first pixel whose centre is at or after `x`, clamped to 0 … width.
uint32_t pixel_behind(double x, uint32_t width) {
  return static_cast<uint32_t>(std::clamp(std::ceil(x - 0.5), 0.0, static_cast<double>(width)));
}

void draw_edge(uint8_t* row, uint32_t from, uint32_t to, Spot centre, double dy, double radius, const Ink& ink) {
  for (uint32_t x = from; x < to; ++x) {
    const double covered = radius + 0.5 - std::hypot(x + 0.5 - centre.x, dy);
    const auto coverage = static_cast<uint32_t>(std::lround(std::clamp(covered, 0.0, 1.0) * 255));
    blend(row + size_t{x} * ink.channel_count, ink, coverage);
  }
}

} // namespace

void draw_disc(const ImageSpan& picture, Spot centre, double radius, const Ink& ink) {
  const uint32_t width = picture.width();
  const uint32_t top = pixel_behind(centre.y - radius - 0.5, picture.height());
  const uint32_t bottom = pixel_behind(centre.y + radius + 0.5, picture.height());
  for (uint32_t y = top; y < bottom; ++y) {
    const double dy = y + 0.5 - centre.y;
    const double outer = half_chord(radius + 0.5, dy), inner = half_chord(radius - 0.5, dy);
    if (outer < 0) continue;
    const uint32_t left = pixel_behind(centre.x - outer, width), right = pixel_behind(centre.x + outer, width);
    const uint32_t solid_left = inner < 0 ? right : pixel_behind(centre.x - inner, width);
    const uint32_t solid_right = inner < 0 ? right : std::max(pixel_behind(centre.x + inner, width), solid_left);
    uint8_t* row = picture.row(y);
    draw_edge(row, left, solid_left, centre, dy, radius, ink);
    for (uint32_t x = solid_left; x < solid_right; ++x) blend(row + size_t{x} * ink.channel_count, ink, 255);
    draw_edge(row, solid_right, right, centre, dy, radius, ink);
  }
}

double phase_at(int64_t time_ns, int64_t period_ns) {
  const int64_t within = time_ns % period_ns;
  return static_cast<double>(within < 0 ? within + period_ns : within) / static_cast<double>(period_ns);
}

Spot marker_spot(MarkerPath path, double phase, uint32_t width, uint32_t height, double margin) {
  const double angle = 2 * std::numbers::pi * phase;
  const Spot middle = {width / 2.0, height / 2.0};
  const double reach_x = std::max(middle.x - margin, 0.0), reach_y = std::max(middle.y - margin, 0.0);
  switch (path) {
    case MarkerPath::circle: {
      const double reach = std::min(reach_x, reach_y);
      return {middle.x + reach * std::cos(angle), middle.y + reach * std::sin(angle)};
    }
    case MarkerPath::eight: return {middle.x + reach_x * std::cos(angle), middle.y + reach_y * std::sin(2 * angle)};
    case MarkerPath::line: return {middle.x - reach_x * std::cos(angle), middle.y};
    case MarkerPath::still: return middle;
  }
  return middle;
}

double pulsed_radius(double radius, double depth, double phase) {
  return radius * (1 - depth * (0.5 - 0.5 * std::cos(2 * std::numbers::pi * phase)));
}

} // namespace millrace::handlers
