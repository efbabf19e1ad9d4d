// Rasterises shapes. A shape is a signed distance: negative inside, positive outside, and never steeper than 1. So the
// distance at the centre of a block of pixels tells if the block can contain an edge at all, and only the blocks along
// edges are subdivided. The time grows with a shape's outline, not with its area.
#include "handlers/draw/shape_mask.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

namespace millrace::handlers {
namespace {

struct Vec {
  double x = 0, y = 0;
};
Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y}; }
Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y}; }
Vec operator*(Vec a, double s) { return {a.x * s, a.y * s}; }
double dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y; }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A form, and the range of distances from its edge that is inked.
struct Part {
  enum class Form { box, disc, region, path } form = Form::path;
  std::vector<Vec> points;     // box, disc: the centre; region: the corners; path: the vertices
  Vec half;                    // box: half its sides; disc: the radius, twice
  double cosine = 1, sine = 0; // box: its rotation
  double from = -kInfinity, to = 0;
};

double distance_to_segments(const std::vector<Vec>& points, bool closed, Vec at) {
  double least = kInfinity;
  for (size_t i = closed ? 0 : 1; i < points.size(); ++i) {
    const Vec a = points[i > 0 ? i - 1 : points.size() - 1], along = points[i] - a, to = at - a;
    const double length = dot(along, along);
    const double t = length > 0 ? std::clamp(dot(to, along) / length, 0.0, 1.0) : 0.0;
    const Vec off = to - along * t;
    least = std::min(least, dot(off, off));
  }
  return std::sqrt(least);
}

// Decides by the even-odd rule.
bool is_inside(const std::vector<Vec>& corners, Vec at) {
  bool inside = false;
  for (size_t i = 0; i < corners.size(); ++i) {
    const Vec a = corners[i > 0 ? i - 1 : corners.size() - 1], b = corners[i];
    if ((a.y > at.y) != (b.y > at.y) && at.x < a.x + (b.x - a.x) * (at.y - a.y) / (b.y - a.y)) inside = !inside;
  }
  return inside;
}

double distance(const Part& part, Vec at) {
  switch (part.form) {
    case Part::Form::box: { // the larger of the two, so that frames have sharp corners
      const Vec off = at - part.points[0];
      const double u = off.x * part.cosine + off.y * part.sine, v = off.y * part.cosine - off.x * part.sine;
      return std::max(std::abs(u) - part.half.x, std::abs(v) - part.half.y);
    }
    case Part::Form::disc: {
      const Vec off = at - part.points[0];
      return std::hypot(off.x, off.y) - part.half.x;
    }
    case Part::Form::region: {
      const double edge = distance_to_segments(part.points, true, at);
      return is_inside(part.points, at) ? -edge : edge;
    }
    default:
      return part.points.size() == 1 ? std::hypot(at.x - part.points[0].x, at.y - part.points[0].y)
                                     : distance_to_segments(part.points, false, at);
  }
}

// The inked share of the pixel at this distance.
double covered(const Part& part, double d) {
  return std::clamp(std::min(d + 0.5, part.to) - std::max(d - 0.5, part.from), 0.0, 1.0);
}

// ---- from shapes to parts

// An ellipse is approximated by a polygon whose edge is at most this far from it, in pixels, up to kCornersMax corners.
constexpr double kFlatness = 0.02;
constexpr double kCornersMax = 1024;

std::vector<Vec> corners_of_ellipse(Vec centre, Vec radii, double cosine, double sine) {
  const double radius = std::max({radii.x, radii.y, 0.5});
  const double step = std::acos(1 - std::min(kFlatness / radius, 0.5));
  const auto count = static_cast<size_t>(std::clamp(std::ceil(std::numbers::pi / step), 12.0, kCornersMax));
  std::vector<Vec> corners;
  for (size_t i = 0; i < count; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(count);
    const Vec flat = {radii.x * std::cos(angle), radii.y * std::sin(angle)};
    corners.push_back(centre + Vec{flat.x * cosine - flat.y * sine, flat.x * sine + flat.y * cosine});
  }
  return corners;
}

void ink_outline(Part& part, bool filled, double thickness) {
  if (filled) return;
  part.from = -thickness / 2;
  part.to = thickness / 2;
}

// The line ends within the head, so that the tip stays sharp.
std::vector<Part> parts_of_arrow(Vec tail, Vec tip, double thickness) {
  const Vec along = tip - tail;
  const double length = std::hypot(along.x, along.y);
  Part line{Part::Form::path, {tail, tip}, {}, 1, 0, -thickness / 2, thickness / 2};
  if (length == 0) return {line};
  const Vec unit = along * (1 / length), side = {-unit.y, unit.x};
  const double head = std::min(length, 3 * thickness + 6), half_width = head / 2;
  const Vec base = tip - unit * head;
  line.points[1] = tip - unit * std::min(length, head * 0.75);
  Part triangle;
  triangle.form = Part::Form::region;
  triangle.points = {tip, base + side * half_width, base - side * half_width};
  return {line, triangle};
}

std::vector<Part> parts_of(const Shape& shape, Vec picture, double thickness) {
  std::vector<Vec> points;
  for (const ShapePoint& point : shape.points) points.push_back({point.x.pixels(picture.x), point.y.pixels(picture.y)});
  const double angle = shape.angle_deg * std::numbers::pi / 180;
  // An angle of 0 is exact, so that an upright rectangle stays one.
  const bool upright = shape.angle_deg == 0;
  const double cosine = upright ? 1 : std::cos(angle), sine = upright ? 0 : std::sin(angle);
  const double smaller = std::min(picture.x, picture.y);
  Part part;
  switch (shape.kind) {
    case ShapeKind::rectangle: {
      part.form = Part::Form::box;
      part.half = Vec{shape.size.x.pixels(picture.x), shape.size.y.pixels(picture.y)} * 0.5;
      part.points = {points[0] + part.half - Vec{0.5, 0.5}};
      part.cosine = cosine;
      part.sine = sine;
      if (!shape.filled) part.from = -thickness; // the frame lies inside
      break;
    }
    case ShapeKind::circle:
      part.form = Part::Form::disc;
      part.points = points;
      part.half = {shape.size.x.pixels(smaller), 0};
      ink_outline(part, shape.filled, thickness);
      break;
    case ShapeKind::ellipse:
      part.form = Part::Form::region;
      part.points =
          corners_of_ellipse(points[0], {shape.size.x.pixels(picture.x), shape.size.y.pixels(picture.y)}, cosine, sine);
      ink_outline(part, shape.filled, thickness);
      break;
    case ShapeKind::polygon:
      part.form = Part::Form::region;
      part.points = points;
      ink_outline(part, shape.filled, thickness);
      break;
    case ShapeKind::line:
      part.points = points;
      ink_outline(part, false, thickness);
      break;
    case ShapeKind::arrow: return parts_of_arrow(points[0], points[1], thickness);
  }
  return {part};
}

// ---- from parts to coverage

// The rectangle of a picture's pixels that a shape may touch, and their coverage.
class Canvas {
 public:
  Canvas(const std::vector<Part>& parts, uint32_t width, uint32_t height) : parts_(parts) {
    Vec low = {kInfinity, kInfinity}, high = {-kInfinity, -kInfinity};
    for (const Part& part : parts) {
      const double around = std::max(part.to, 0.0) + std::hypot(part.half.x, part.half.y) + 1;
      for (const Vec& point : part.points) {
        low = {std::min(low.x, point.x - around), std::min(low.y, point.y - around)};
        high = {std::max(high.x, point.x + around), std::max(high.y, point.y + around)};
      }
    }
    const auto inside = [](double value, uint32_t size) {
      return static_cast<uint32_t>(std::clamp(value, 0.0, 1.0 * size));
    };
    left_ = inside(std::floor(low.x), width);
    top_ = inside(std::floor(low.y), height);
    width_ = inside(std::ceil(high.x) + 1, width) - left_;
    height_ = inside(std::ceil(high.y) + 1, height) - top_;
    coverage_.resize(size_t{width_} * height_);
    if (!coverage_.empty()) fill(0, 0, width_, height_);
  }

  uint32_t left() const { return left_; }
  uint32_t top() const { return top_; }
  uint32_t width() const { return width_; }
  uint32_t height() const { return height_; }
  const uint8_t* row(uint32_t y) const { return coverage_.data() + size_t{y} * width_; }

 private:
  static constexpr uint32_t kBlockMin = 4; // blocks of at most this many pixels a side are computed pixel by pixel

  void fill(uint32_t x, uint32_t y, uint32_t width, uint32_t height) {
    const Vec middle = {left_ + x + (width - 1) / 2.0, top_ + y + (height - 1) / 2.0};
    const double radius = std::hypot((width - 1) / 2.0, (height - 1) / 2.0) + 0.5; // up to the corners of its pixels
    bool touched = false;
    for (const Part& part : parts_) {
      const double d = distance(part, middle);
      if (d - radius >= part.from && d + radius <= part.to) return fill_whole(x, y, width, height);
      touched = touched || (d - radius < part.to && d + radius > part.from);
    }
    if (!touched) return;
    if (width <= kBlockMin && height <= kBlockMin) return fill_pixels(x, y, width, height);
    const uint32_t w = (width + 1) / 2, h = (height + 1) / 2;
    fill(x, y, w, h);
    if (width > w) fill(x + w, y, width - w, h);
    if (height > h) fill(x, y + h, w, height - h);
    if (width > w && height > h) fill(x + w, y + h, width - w, height - h);
  }
  void fill_whole(uint32_t x, uint32_t y, uint32_t width, uint32_t height) {
    for (uint32_t row = y; row < y + height; ++row)
      std::memset(coverage_.data() + size_t{row} * width_ + x, 255, width);
  }
  void fill_pixels(uint32_t x, uint32_t y, uint32_t width, uint32_t height) {
    for (uint32_t row = y; row < y + height; ++row)
      for (uint32_t column = x; column < x + width; ++column) {
        double most = 0;
        for (const Part& part : parts_)
          most = std::max(most, covered(part, distance(part, {1.0 * left_ + column, 1.0 * top_ + row})));
        coverage_[size_t{row} * width_ + column] = static_cast<uint8_t>(std::lround(most * 255));
      }
  }

  const std::vector<Part>& parts_;
  uint32_t left_ = 0, top_ = 0, width_ = 0, height_ = 0;
  std::vector<uint8_t> coverage_;
};

} // namespace

ShapeMask::ShapeMask(const Shape& shape, uint32_t width, uint32_t height, double thickness) {
  const std::vector<Part> parts =
      parts_of(shape, {static_cast<double>(width), static_cast<double>(height)}, shape.thickness.value_or(thickness));
  const Canvas canvas(parts, width, height);
  for (uint32_t y = 0; y < canvas.height(); ++y) {
    const uint8_t* row = canvas.row(y);
    for (uint32_t x = 0; x < canvas.width();) {
      uint32_t end = x + 1;
      while (end < canvas.width() && row[end] == row[x]) ++end;
      if (row[x] > 0) runs_.push_back({canvas.top() + y, canvas.left() + x, end - x, row[x]});
      x = end;
    }
  }
}

void ShapeMask::draw(const ImageSpan& picture, const Ink& ink) const {
  for (const Run& run : runs_) {
    if (run.y >= picture.height()) return;
    if (run.x >= picture.width()) continue;
    const uint32_t count = std::min(run.count, picture.width() - run.x);
    uint8_t* pixel = picture.row(run.y) + size_t{run.x} * ink.channel_count;
    for (uint32_t i = 0; i < count; ++i, pixel += ink.channel_count) blend(pixel, ink, run.coverage);
  }
}

} // namespace millrace::handlers
