// volume.test: a source of a volume that every machine makes with the same bytes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "millrace/handler.h"

namespace millrace::volume {
namespace {

constexpr const char* kTestManual = &R"(
Gives one volume, [depth, height, width] voxels of 8 bits, with the same bytes on every machine: balls
that are brighter towards their middle, and tubes along all three axes with less light. Their places
come from `seed`.

    volume.test width=32 height=32 depth=32 ! null.sink
)"[1];

// SplitMix64.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
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

struct Size {
  int32_t width, height, depth;
};

// Whole numbers alone, so that no machine rounds.
class Scene {
 public:
  Scene(std::span<uint8_t> voxels, Size size, uint64_t seed) : voxels_(voxels), size_(size), numbers_(seed) {
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
  Size size_;
  Numbers numbers_;
};

class TestVolume final : public Handler {
 public:
  void probe(Facts& facts) override { facts.tick_count(1); }
  void configure(const Formats& formats) override {
    formats.tensor(volume_, dtype_of<uint8_t>(), {*depth_, *height_, *width_});
  }
  void reset() override { is_given_ = false; }
  void process(Tick& tick, Cpu&) {
    if (is_given_) return tick.end();
    is_given_ = true;
    const int64_t shape[] = {*depth_, *height_, *width_};
    const Size size = {static_cast<int32_t>(*width_), static_cast<int32_t>(*height_), static_cast<int32_t>(*depth_)};
    Scene(volume_.allocate(tick, dtype_of<uint8_t>(), shape).elements<uint8_t>(), size, static_cast<uint64_t>(*seed_));
  }

 private:
  static constexpr double kSideMax = 2048;

  Output<Tensor> volume_{*this, "volume", dtypes<uint8_t>(), rank(3), lasting, help("[depth, height, width]")};
  Param<int64_t> width_{*this, "width", 128, "voxels from left to right", range(1, kSideMax)};
  Param<int64_t> height_{*this, "height", 128, "voxels from top to bottom", range(1, kSideMax)};
  Param<int64_t> depth_{*this, "depth", 128, "voxels away from the eye", range(1, kSideMax)};
  Param<int64_t> seed_{*this, "seed", 1, "other places for another seed"};
  bool is_given_ = false;
};

MILLRACE_HANDLER(TestVolume, "volume.test", "Gives a volume of balls and tubes", kTestManual)

} // namespace
} // namespace millrace::volume
