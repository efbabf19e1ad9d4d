// Voxels, and the values between them. For host and device.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "plugins/volume/camera.h"

namespace millrace::volume {

// Places between voxels have no fraction of eight bits left in a longer volume.
inline constexpr int64_t kSideMax = 65536;

// Dense, [z, y, x].
template <class Number>
struct Voxels {
  const Number* data;
  int32_t width, height, depth;

  MR_HOST_DEVICE Vector size() const {
    return {static_cast<float>(width), static_cast<float>(height), static_cast<float>(depth)};
  }
  MR_HOST_DEVICE float at(int32_t x, int32_t y, int32_t z) const {
    return static_cast<float>(data[(static_cast<int64_t>(z) * height + y) * width + x]);
  }
  MR_HOST_DEVICE static bool has_no_negatives() { return std::is_unsigned_v<Number>; }
  // Linear between the middles of eight voxels. Weights have eight bits, as those of a GPU's textures; beyond the outer
  // middles the outer voxels count.
  MR_HOST_DEVICE float value(Vector p) const {
    const Place x = place(p.x, width), y = place(p.y, height), z = place(p.z, depth);
    const auto along_x = [&](int32_t row, int32_t plane) {
      const float low = at(x.low, row, plane);
      return low + x.weight * (at(x.high, row, plane) - low);
    };
    const auto along_y = [&](int32_t plane) {
      const float low = along_x(y.low, plane);
      return low + y.weight * (along_x(y.high, plane) - low);
    };
    const float low = along_y(z.low);
    return low + z.weight * (along_y(z.high) - low);
  }

 private:
  struct Place {
    int32_t low, high;
    float weight; // the higher one's
  };
  MR_HOST_DEVICE static Place place(float at, int32_t count) {
    const float from_middle = at - 0.5F, floor = floorf(from_middle);
    const auto low = static_cast<int32_t>(floor);
    const auto within = [count](int32_t i) { return i < 0 ? 0 : i < count ? i : count - 1; };
    return {within(low), within(low + 1), rintf((from_middle - floor) * 256) / 256};
  }
};

} // namespace millrace::volume
