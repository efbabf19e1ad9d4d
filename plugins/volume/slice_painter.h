// Pictures of a plane on the host.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "millrace/payload/view.h"
#include "plugins/crew/crew.h"
#include "plugins/volume/contrast.h"
#include "plugins/volume/plane_levels.h"
#include "plugins/volume/plane_pyramid.h"

namespace millrace::volume {

// The plane as a camera sees it. At zoom 1 the plane fits the picture, and the camera's pixels of the scene are as
// large as those of the picture. Azimuth and elevation do not count, and of the center only x and y, along columns and
// rows.
class SliceView {
 public:
  SliceView(const ViewCamera& camera, uint32_t width, uint32_t height, PlaneSize plane);

  // Pixels of the plane from its corner, for a point in pixels from that of the picture.
  Corner through(double x, double y) const;
  Corners corners() const;
  double pixels() const { return 1 / pixel_; } // the picture has these for one of the plane

  uint32_t width() const { return width_; }
  uint32_t height() const { return height_; }
  PlaneSize plane() const { return plane_; }
  // The way on the plane for a pixel to the right, and for one down.
  Corner right() const { return right_; }
  Corner down() const { return down_; }

 private:
  uint32_t width_, height_; // the picture's
  PlaneSize plane_;
  double pixel_; // the picture's, in pixels of the plane
  Corner middle_, right_, down_;
};

// From values to red, green and blue.
class Tone {
 public:
  Tone(const Contrast& contrast, const ViewLook& look, const std::string& colour_map);
  // Writes 3 · count bytes. What is not a number is as black as the least value.
  void paint(const float* values, size_t count, uint8_t* to) const;

 private:
  static constexpr size_t kCells = 4096, kAtOnce = 256;

  int16_t level_of(float line) const;
  void find_levels(const float* values, size_t count, uint8_t* levels) const;

  float low_, per_value_, gamma_;
  std::array<std::array<uint8_t, 4>, 256> colours_{}; // and one byte more, as four are copied faster than three
  std::vector<int16_t> cells_;                        // levels of equal parts of the line from 0 to 1; -1: several
};

enum class Interpolation : uint32_t { nearest, linear, cubic };

// Writes red, green and blue of each pixel to rows that lie `stride` bytes apart; black is where the plane is not.
// `part` covers what is seen of the level; samples at its edge take the numbers there for those beyond.
template <class Element>
void paint_slice(const Part<Element>& part, int32_t level, const SliceView& view, Interpolation interpolation,
                 const Tone& tone, uint8_t* picture, size_t stride, Crew& crew);

} // namespace millrace::volume
