// The balls and tubes of volume.test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::volume {

// SplitMix64.
class SceneNumbers {
 public:
  explicit SceneNumbers(uint64_t seed) : state_(seed) {}
  // From 0 to `below` − 1.
  uint32_t below(uint32_t below) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<uint32_t>((z ^ (z >> 31)) % below);
  }

 private:
  uint64_t state_;
};

struct SceneSize {
  int32_t width, height, depth;
};

// Whole numbers alone, so that no machine rounds.
class TestScene {
 public:
  TestScene(std::span<uint8_t> voxels, SceneSize size, uint64_t seed) : voxels_(voxels), size_(size), numbers_(seed) {
    std::ranges::fill(voxels_, uint8_t{0});
    const int32_t side = std::min({size.width, size.height, size.depth});
    for (int n = 0; n < kTubes; ++n) add_tube(n % 3, std::max(side / 24, 1));
    for (int n = 0; n < kBalls; ++n) add_ball(std::max(side / 20 + below(side / 8 + 1), 1));
  }

 private:
  static constexpr int kBalls = 12, kTubes = 9;
  static constexpr int32_t kTubeLight = 110, kBallLight = 255, kRimLight = 60;

  int32_t below(int32_t most) { return static_cast<int32_t>(numbers_.below(static_cast<uint32_t>(most))); }
  uint8_t& at(int32_t x, int32_t y, int32_t z) {
    return voxels_[(static_cast<size_t>(z) * static_cast<size_t>(size_.height) + static_cast<size_t>(y)) *
                       static_cast<size_t>(size_.width) +
                   static_cast<size_t>(x)];
  }
  template <class F>
  void within(const int32_t (&middle)[3], const int32_t (&reach)[3], F&& f) {
    const int32_t size[3] = {size_.width, size_.height, size_.depth};
    int32_t low[3], high[3];
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::max(middle[axis] - reach[axis], 0);
      high[axis] = std::min(middle[axis] + reach[axis] + 1, size[axis]);
    }
    for (int32_t z = low[2]; z < high[2]; ++z)
      for (int32_t y = low[1]; y < high[1]; ++y)
        for (int32_t x = low[0]; x < high[0]; ++x) f(x - middle[0], y - middle[1], z - middle[2], at(x, y, z));
  }
  void add_ball(int32_t radius) {
    const int32_t middle[3] = {below(size_.width), below(size_.height), below(size_.depth)};
    const int32_t reach[3] = {radius, radius, radius};
    within(middle, reach, [&](int32_t x, int32_t y, int32_t z, uint8_t& voxel) {
      const int64_t square = int64_t{x} * x + int64_t{y} * y + int64_t{z} * z, most = int64_t{radius} * radius;
      if (square > most) return;
      brighten(voxel, kBallLight - (kBallLight - kRimLight) * square / most);
    });
  }
  void add_tube(int axis, int32_t radius) {
    const int32_t size[3] = {size_.width, size_.height, size_.depth};
    int32_t middle[3] = {below(size_.width), below(size_.height), below(size_.depth)};
    int32_t reach[3] = {radius, radius, radius};
    reach[axis] = size[axis];
    within(middle, reach, [&](int32_t x, int32_t y, int32_t z, uint8_t& voxel) {
      const int64_t along[3] = {x, y, z};
      int64_t square = 0;
      for (int other = 0; other < 3; ++other) square += other == axis ? 0 : along[other] * along[other];
      if (square <= int64_t{radius} * radius) brighten(voxel, kTubeLight);
    });
  }
  static void brighten(uint8_t& voxel, int64_t light) { voxel = std::max(voxel, static_cast<uint8_t>(light)); }

  std::span<uint8_t> voxels_;
  SceneSize size_;
  SceneNumbers numbers_;
};

} // namespace millrace::volume
