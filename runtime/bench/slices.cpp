// `millrace bench slices`: pictures of 1080p of a plane of 4096 × 4096 numbers of 16 bits, on one thread.
//
// `plain loop` is what a person would write first: for each pixel of the picture the nearest number of the plane,
// through contrast and map. `volume.slice` is the work of that handler for a picture, from the camera to the copy into
// its output. Both take turns. `rate to plain` is the pictures per second of the handler for one of the plain loop.
//
// On `level 0` both read the plane itself, and their pictures are equal. Where the rules choose the level, the plane is
// shown from one that is there already, and `first picture` makes it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bench/measure.h"
#include "plugins/volume/colour_maps.h"
#include "plugins/volume/slice_painter.h"

namespace millrace::bench {
namespace slices {

using namespace millrace::volume;

constexpr uint32_t kWidth = 1920, kHeight = 1080;
constexpr int32_t kSide = 4096;
constexpr Contrast kContrast = {1000, 50'000};
constexpr int kTurns = 25;
constexpr const char* kMap = "viridis";

std::vector<uint16_t> plane_numbers() {
  std::vector<uint16_t> numbers(size_t{kSide} * kSide);
  uint32_t state = 1;
  for (size_t i = 0; i < numbers.size(); ++i) {
    state = state * 1664525 + 1013904223; // the generator of Numerical Recipes: noise on waves
    const double wave = std::sin(static_cast<double>(i % kSide) / 90) * std::cos(static_cast<double>(i / kSide) / 70);
    numbers[i] = static_cast<uint16_t>(30'000 + 20'000 * wave + (state >> 20));
  }
  return numbers;
}

class Pictures {
 public:
  Pictures() : numbers_(plane_numbers()), made_(kBytes), given_(kBytes), plain_(kBytes) {}

  // Milliseconds of one picture. `level`: -1 by the rules.
  double slice_ms(const ViewCamera& camera, int32_t level, Interpolation interpolation) {
    const int64_t begin_ns = monotonic_ns();
    const SliceView view(camera, kWidth, kHeight, {kSide, kSide});
    const auto choice =
        chooser_.choose({{kSide, kSide}, view.corners(), view.pixels(), camera.zoom, now_ns_, level, 2});
    const Part<uint16_t> part = pyramid_.part(choice.level, choice.region, crew_);
    paint_slice(part, choice.level, view, interpolation, Tone(kContrast, {}, kMap), made_.data(), kRowBytes, crew_);
    for (uint32_t y = 0; y < kHeight; ++y)
      std::memcpy(given_.data() + y * kRowBytes, made_.data() + y * kRowBytes, kRowBytes);
    now_ns_ += 1'000'000'000; // by the next picture a level may change again
    return static_cast<double>(monotonic_ns() - begin_ns) / 1e6;
  }
  void forget() {
    chooser_.reset();
    pyramid_.begin({{kSide, kSide}, numbers_.data(), kSide, nullptr});
  }

  double plain_ms(const ViewCamera& camera) {
    const int64_t begin_ns = monotonic_ns();
    const auto colours = colour_map(kMap);
    const double pixel = static_cast<double>(kSide) / kHeight / camera.zoom;
    const auto place = [pixel](uint32_t at, uint32_t side) {
      return static_cast<int32_t>(std::floor(kSide / 2.0 + (at + 0.5 - side / 2.0) * pixel));
    };
    std::vector<int32_t> columns;
    for (uint32_t x = 0; x < kWidth; ++x) columns.push_back(place(x, kWidth));
    for (uint32_t y = 0; y < kHeight; ++y) {
      uint8_t* to = plain_.data() + y * kRowBytes;
      const int32_t row = place(y, kHeight);
      for (uint32_t x = 0; x < kWidth; ++x, to += 3) {
        const int32_t column = columns[x];
        const bool is_inside = column >= 0 && column < kSide && row >= 0 && row < kSide;
        if (!is_inside) {
          to[0] = to[1] = to[2] = 0;
          continue;
        }
        const auto value = static_cast<float>(numbers_[static_cast<size_t>(row) * kSide + static_cast<size_t>(column)]);
        const float line = std::clamp((value - kContrast.low) / (kContrast.high - kContrast.low), 0.0F, 1.0F);
        const uint8_t* const colour = colours.data() + 3 * std::lrint(line * 255);
        to[0] = colour[0];
        to[1] = colour[1];
        to[2] = colour[2];
      }
    }
    return static_cast<double>(monotonic_ns() - begin_ns) / 1e6;
  }

  // The part of the bytes that are equal; a division and a product by the inverse may round apart.
  double alike() const {
    size_t equal = 0;
    for (size_t i = 0; i < kBytes; ++i) equal += given_[i] == plain_[i];
    return static_cast<double>(equal) / static_cast<double>(kBytes);
  }

 private:
  static constexpr size_t kRowBytes = size_t{kWidth} * 3, kBytes = kRowBytes * kHeight;

  const std::vector<uint16_t> numbers_;
  std::vector<uint8_t> made_, given_, plain_;
  Crew crew_{1};
  LevelChooser chooser_{{}, uint64_t{64} << 20};
  PlanePyramid<uint16_t> pyramid_{uint64_t{256} << 20};
  int64_t now_ns_ = 0;
};

struct Case {
  const char* name;
  float zoom;
  int32_t level;
  Interpolation interpolation;
  bool is_first; // everything is forgotten before each picture
};
constexpr Case kCases[] = {{"whole, level 0, nearest", 1, 0, Interpolation::nearest, false},
                           {"zoom 4, level 0, nearest", 4, 0, Interpolation::nearest, false},
                           {"zoom 4, level 0, linear", 4, 0, Interpolation::linear, false},
                           {"zoom 4, level 0, cubic", 4, 0, Interpolation::cubic, false},
                           {"whole, by the rules, nearest", 1, -1, Interpolation::nearest, false},
                           {"whole, by the rules, linear", 1, -1, Interpolation::linear, false},
                           {"whole, first picture", 1, -1, Interpolation::linear, true}};

std::vector<Row> measured() {
  std::vector<Row> rows;
  Pictures pictures;
  for (const Case& one : kCases) {
    ViewCamera camera;
    camera.zoom = one.zoom;
    std::vector<double> plain, slice, rate;
    pictures.forget();
    if (!one.is_first) pictures.slice_ms(camera, one.level, one.interpolation);
    for (int turn = 0; turn < kTurns; ++turn) {
      if (one.is_first) pictures.forget();
      plain.push_back(pictures.plain_ms(camera));
      slice.push_back(pictures.slice_ms(camera, one.level, one.interpolation));
      rate.push_back(plain.back() / slice.back());
    }
    const bool is_same = one.level == 0 && one.interpolation == Interpolation::nearest;
    if (is_same && pictures.alike() < 0.999) throw std::logic_error("the two pictures differ");
    rows.push_back(row_of("slices", one.name, "plain loop", "ms", plain));
    rows.push_back(row_of("slices", one.name, "volume.slice", "ms", slice));
    rows.push_back(row_of("slices", one.name, "rate to plain", "", rate));
  }
  return rows;
}

} // namespace slices

std::vector<Row> bench_slices() { return slices::measured(); }

} // namespace millrace::bench
