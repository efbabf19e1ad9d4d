// Planes of a volume across one of its axes, and the numbers that they show together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "plugins/volume/plane_levels.h"
#include "plugins/volume/voxels.h"

namespace millrace::volume {

enum class Axis : int32_t { z, y, x }; // across which a plane lies; as in the shape of a volume
enum class Projection : uint32_t { mean, maximum, minimum };

// The place in a volume at which a slab is cut out.
struct Cut {
  Axis axis = Axis::z;
  int32_t position = 0;  // the plane in its middle
  int32_t thickness = 1; // planes; those beyond the volume are left out
  Projection projection = Projection::mean;
  friend bool operator==(const Cut&, const Cut&) = default;
};

inline int32_t planes_across(Axis axis, int32_t depth, int32_t height, int32_t width) {
  return axis == Axis::z ? depth : axis == Axis::y ? height : width;
}

// The picture's columns and rows are the two axes that are left, in the order x, y, z.
template <class Number>
struct Slab {
  const Number* first;                  // the upper left number of the first plane
  PlaneSize size;                       // a plane's
  int32_t count;                        // planes
  int64_t to_right, to_below, to_after; // numbers from one to the next

  // True if the numbers of one row lie one after the other, as they are shown.
  bool is_plain() const { return count == 1 && to_right == 1; }
};

template <class Number>
Slab<Number> slab_of(const Voxels<Number>& voxels, const Cut& cut) {
  const int64_t strides[3] = {int64_t{voxels.width} * voxels.height, voxels.width, 1};
  const int32_t sides[3] = {voxels.depth, voxels.height, voxels.width};
  const auto axis = static_cast<int32_t>(cut.axis);
  const int32_t down = axis == 0 ? 1 : 0, right = axis == 2 ? 1 : 2;
  const int32_t first = std::max(cut.position - (cut.thickness - 1) / 2, 0);
  const int32_t end = std::min(cut.position - (cut.thickness - 1) / 2 + cut.thickness, sides[axis]);
  return {voxels.data + first * strides[axis],
          {sides[right], sides[down]},
          end - first,
          strides[right],
          strides[down],
          strides[axis]};
}

// Writes a region of the slab's plane, dense. A mean of several planes is a float, rounded once; `Element` is float or
// Number for all others.
template <class Number, class Element>
void read(const Slab<Number>& slab, Projection projection, const Region& region, Element* to) {
  const auto columns = static_cast<size_t>(region.width());
  std::vector<float> sums(projection == Projection::mean && slab.count > 1 ? columns : 0);
  for (int32_t y = region.top; y < region.bottom; ++y, to += columns) {
    const Number* const row = slab.first + y * slab.to_below + region.left * slab.to_right;
    const auto each = [&](int32_t plane, auto&& take) {
      const Number* at = row + plane * slab.to_after;
      for (size_t x = 0; x < columns; ++x, at += slab.to_right) take(x, *at);
    };
    each(0, [&](size_t x, Number value) { to[x] = static_cast<Element>(value); });
    if (slab.count == 1) continue;
    if (projection != Projection::mean) {
      const bool is_maximum = projection == Projection::maximum;
      for (int32_t plane = 1; plane < slab.count; ++plane)
        each(plane, [&](size_t x, Number value) {
          const auto element = static_cast<Element>(value);
          to[x] = is_maximum ? std::max(to[x], element) : std::min(to[x], element);
        });
      continue;
    }
    std::copy(to, to + columns, sums.begin());
    for (int32_t plane = 1; plane < slab.count; ++plane)
      each(plane, [&](size_t x, Number value) { sums[x] += static_cast<float>(value); });
    for (size_t x = 0; x < columns; ++x) to[x] = static_cast<Element>(sums[x] / static_cast<float>(slab.count));
  }
}

} // namespace millrace::volume
