// `millrace bench volume`: pictures of 320 × 180 of a volume of 256³ bytes that turns, on one thread.
//
// `plain loop` takes one sample a voxel along each ray, between eight voxels, and passes over nothing. `volume.render`
// is the work of that handler for a picture. Both take turns, with the same rays and the same samples. Where the camera
// moves, both compute every second pixel of every second row. `rate to plain` is the pictures per second of the handler
// for one of the plain loop.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "plugins/volume/painter.h"
#include "plugins/volume/test_scene.h"

namespace millrace::bench {
namespace volumes {

using namespace millrace::volume;

constexpr int32_t kSide = 256;
constexpr uint32_t kWidth = 320, kHeight = 180;
constexpr size_t kRowBytes = size_t{kWidth} * 3;
constexpr int kTurns = 15;

class Pictures {
 public:
  Pictures() : voxels_(size_t{kSide} * kSide * kSide), ours_(kRowBytes * kHeight), plain_(kRowBytes * kHeight) {
    const TestScene scene(voxels_, {kSide, kSide, kSide}, 1);
    survey_.emplace(volume(), crew_);
  }

  // Milliseconds of one picture.
  double render_ms(const Sight& sight) {
    const int64_t begin_ns = monotonic_ns();
    paint(volume(), survey_->bricks(), sight, ours_.data(), kRowBytes, crew_);
    return static_cast<double>(monotonic_ns() - begin_ns) / 1e6;
  }
  double plain_ms(const Sight& sight) {
    const int64_t begin_ns = monotonic_ns();
    const Voxels<uint8_t> voxels = volume();
    for (uint32_t y = 0; y < kHeight; y += sight.coarse)
      for (uint32_t x = 0; x < kWidth; x += sight.coarse) write(sight, x, y, seen_by(sight, voxels, x, y));
    return static_cast<double>(monotonic_ns() - begin_ns) / 1e6;
  }
  Sight sight(Mode mode, int turn, bool moves) const {
    ViewCamera camera;
    camera.angles[0] = static_cast<float>(24 * turn);
    camera.angles[1] = static_cast<float>(7 * turn % 60 - 30);
    camera.moving = moves;
    return sight_of({kWidth, kHeight, mode, "fire", 0.5F, 1}, survey_->contrast(),
                    {float{kSide}, float{kSide}, float{kSide}}, camera, {});
  }
  // The part of the bytes that differ by 1 at most.
  double alike() const {
    size_t near = 0;
    for (size_t i = 0; i < ours_.size(); ++i) near += std::abs(int{ours_[i]} - int{plain_[i]}) <= 1;
    return static_cast<double>(near) / static_cast<double>(ours_.size());
  }

 private:
  Voxels<uint8_t> volume() const { return {voxels_.data(), kSide, kSide, kSide}; }

  static Colour seen_by(const Sight& sight, const Voxels<uint8_t>& voxels, uint32_t x, uint32_t y) {
    const float half = static_cast<float>(sight.coarse) / 2;
    const Ray ray = sight.rays.through(static_cast<float>(x) + half, static_cast<float>(y) + half);
    const Span span = span_in(ray, {}, voxels.size());
    const Shading& shading = sight.shading;
    float most = 0, left = 1;
    Colour fog;
    bool meets = false;
    for (float at = span.begin + 0.5F; at < span.end; at += 1) {
      meets = true;
      const float value = voxels.value(ray.origin + ray.direction * at);
      most = std::max(most, value);
      if (shading.mode == Mode::maximum) continue;
      const float level = shading.level(value), part = left * shading.opacity * level;
      const Colour colour = colour_of(shading, level);
      fog = {fog.red + part * colour.red, fog.green + part * colour.green, fog.blue + part * colour.blue};
      left -= part;
    }
    if (shading.mode == Mode::translucent) return fog;
    return meets ? colour_of(shading, shading.level(most)) : Colour();
  }
  void write(const Sight& sight, uint32_t x, uint32_t y, Colour colour) {
    const auto byte_of = [](float channel) {
      return static_cast<uint8_t>(std::lround(std::clamp(channel, 0.0F, 255.0F)));
    };
    for (uint32_t down = y; down < std::min(y + sight.coarse, kHeight); ++down)
      for (uint32_t beside = x; beside < std::min(x + sight.coarse, kWidth); ++beside) {
        uint8_t* const to = plain_.data() + down * kRowBytes + 3 * size_t{beside};
        to[0] = byte_of(colour.red);
        to[1] = byte_of(colour.green);
        to[2] = byte_of(colour.blue);
      }
  }

  std::vector<uint8_t> voxels_, ours_, plain_;
  Crew crew_{1};
  std::optional<Survey<uint8_t>> survey_;
};

std::vector<Row> measured() {
  std::vector<Row> rows;
  Pictures pictures;
  for (const bool moves : {true, false})
    for (const auto& [name, mode] :
         {std::pair("translucent", Mode::translucent), std::pair("maximum", Mode::maximum)}) {
      std::vector<double> plain, ours, rate;
      for (int turn = 0; turn < kTurns; ++turn) {
        const Sight sight = pictures.sight(mode, turn, moves);
        plain.push_back(pictures.plain_ms(sight));
        ours.push_back(pictures.render_ms(sight));
        rate.push_back(plain.back() / ours.back());
        // A ray ends early where what is left of the fog shows no more, which can be seen in a byte of some hundreds.
        if (pictures.alike() < 0.98) throw std::logic_error("the two pictures differ");
      }
      const std::string what = std::string(name) + (moves ? ", moving" : ", at rest");
      rows.push_back(row_of("volume", what, "plain loop", "ms", plain));
      rows.push_back(row_of("volume", what, "volume.render", "ms", ours));
      rows.push_back(row_of("volume", what, "rate to plain", "", rate));
    }
  return rows;
}

} // namespace volumes

std::vector<Row> bench_volume() { return volumes::measured(); }

} // namespace millrace::bench
