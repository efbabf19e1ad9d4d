// Pictures of planes beside a slow program in double precision.
#include "plugins/volume/slice_painter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "plugins/volume/colour_maps.h"
#include "plugins/volume/slab.h"
#include "tests/seed.h"

namespace millrace::volume::slice_painter_test {
namespace {

constexpr uint32_t kWidth = 60, kHeight = 44;

template <class Number>
struct Volume {
  int32_t depth, height, width;
  std::vector<Number> numbers;

  Volume(int32_t d, int32_t h, int32_t w, std::mt19937& random)
      : depth(d),
        height(h),
        width(w),
        numbers(static_cast<size_t>(d) * static_cast<size_t>(h) * static_cast<size_t>(w)) {
    for (Number& number : numbers)
      number = std::is_same_v<Number, float> ? static_cast<Number>(static_cast<double>(random() % 100'000) / 1000 - 50)
                                             : static_cast<Number>(random());
  }
  Voxels<Number> voxels() const { return {numbers.data(), width, height, depth}; }
  double at(int32_t z, int32_t y, int32_t x) const {
    return static_cast<double>(numbers[(static_cast<size_t>(z) * static_cast<size_t>(height) + static_cast<size_t>(y)) *
                                           static_cast<size_t>(width) +
                                       static_cast<size_t>(x)]);
  }
};

// ---- the slow program

struct SlowPlane {
  int32_t width, height;
  std::vector<double> numbers;
  double at(int32_t x, int32_t y) const {
    x = std::clamp(x, 0, width - 1), y = std::clamp(y, 0, height - 1);
    return numbers[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
  }
};

template <class Number>
SlowPlane slow_plane(const Volume<Number>& volume, const Cut& cut) {
  const bool is_z = cut.axis == Axis::z, is_x = cut.axis == Axis::x;
  SlowPlane plane{is_x ? volume.height : volume.width, is_z ? volume.height : volume.depth, {}};
  const int32_t planes = is_z ? volume.depth : is_x ? volume.width : volume.height;
  for (int32_t y = 0; y < plane.height; ++y)
    for (int32_t x = 0; x < plane.width; ++x) {
      std::vector<double> through;
      for (int32_t n = 0; n < cut.thickness; ++n) {
        const int32_t at = cut.position - (cut.thickness - 1) / 2 + n;
        if (at < 0 || at >= planes) continue;
        through.push_back(is_z ? volume.at(at, y, x) : is_x ? volume.at(y, x, at) : volume.at(y, at, x));
      }
      double sum = 0;
      for (const double value : through) sum += value;
      plane.numbers.push_back(cut.projection == Projection::mean ? sum / static_cast<double>(through.size())
                              : cut.projection == Projection::maximum
                                  ? *std::max_element(through.begin(), through.end())
                                  : *std::min_element(through.begin(), through.end()));
    }
  return plane;
}

SlowPlane halved(const SlowPlane& from, bool is_whole) {
  SlowPlane to{(from.width + 1) / 2, (from.height + 1) / 2, {}};
  for (int32_t y = 0; y < to.height; ++y)
    for (int32_t x = 0; x < to.width; ++x) {
      const double mean = (from.at(2 * x, 2 * y) + from.at(2 * x + 1, 2 * y) + from.at(2 * x, 2 * y + 1) +
                           from.at(2 * x + 1, 2 * y + 1)) /
                          4;
      to.numbers.push_back(is_whole ? std::nearbyint(mean) : mean);
    }
  return to;
}

double value_at(const SlowPlane& plane, double x, double y, Interpolation interpolation) {
  if (interpolation == Interpolation::nearest)
    return plane.at(static_cast<int32_t>(std::floor(x)), static_cast<int32_t>(std::floor(y)));
  const auto along = [&](double place, const std::function<double(int32_t)>& number) {
    const auto low = static_cast<int32_t>(std::floor(place - 0.5));
    const double t = place - 0.5 - low, b = number(low), c = number(low + 1);
    if (interpolation == Interpolation::linear) return b + t * (c - b);
    // Hermite's cubic through b and c, whose slopes are those between the neighbours.
    const double slope_b = (c - number(low - 1)) / 2, slope_c = (number(low + 2) - b) / 2;
    return (2 * t * t * t - 3 * t * t + 1) * b + (t * t * t - 2 * t * t + t) * slope_b +
           (3 * t * t - 2 * t * t * t) * c + (t * t * t - t * t) * slope_c;
  };
  return along(y, [&](int32_t row) { return along(x, [&](int32_t column) { return plane.at(column, row); }); });
}

// The level of a pixel's gray, 0 to 255; `plane` is level 0, `shown` the one that is sampled.
double slow_gray(const SlowPlane& plane, const SlowPlane& shown, int32_t level, const ViewCamera& camera,
                 Interpolation interpolation, const Contrast& contrast, const ViewLook& look, double x, double y) {
  const double scene = std::max(double{1} * plane.width / kWidth, double{1} * plane.height / kHeight);
  const double roll = camera.angles[2] * 3.14159265358979323846 / 180;
  const double right = (x - kWidth / 2.0) / camera.zoom, down = (y - kHeight / 2.0) / camera.zoom;
  // The picture is turned clockwise, so its points are turned back.
  const double column = plane.width / 2.0 + scene * (camera.center[0] + std::cos(roll) * right + std::sin(roll) * down);
  const double row = plane.height / 2.0 + scene * (camera.center[1] - std::sin(roll) * right + std::cos(roll) * down);
  if (column < 0 || column >= plane.width || row < 0 || row >= plane.height) return 0;
  const double pixel = std::pow(2.0, level);
  const double value = value_at(shown, column / pixel, row / pixel, interpolation);
  const double range = double{contrast.high} - contrast.low;
  const double line = (value - (contrast.low + look.low * range)) / ((double{look.high} - look.low) * range);
  return 255 * std::pow(std::clamp(line, 0.0, 1.0), look.gamma);
}

// ---- random pictures

struct Draw {
  std::mt19937 random{random_seed()};
  float between(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); }
  int32_t below(int32_t most) { return std::uniform_int_distribution<int32_t>(0, most - 1)(random); }
  ViewCamera camera() {
    ViewCamera camera;
    for (float& place : camera.center) place = between(-15, 15);
    camera.zoom = std::exp(between(-1, 2.5F));
    if (below(2)) camera.angles[2] = between(-180, 180);
    return camera;
  }
  ViewLook look() {
    ViewLook look;
    look.low = between(-0.2F, 0.4F);
    look.high = between(0.6F, 1.3F);
    if (below(2)) look.gamma = between(0.4F, 2.5F);
    return look;
  }
};

template <class Number, class Element>
PlaneSource<Element> source_of(const Slab<Number>& slab, Projection projection) {
  PlaneSource<Element> source;
  source.size = slab.size;
  source.read = [slab, projection](const Region& region, Element* to) { read(slab, projection, region, to); };
  return source;
}

template <class Number, class Element>
void compare_one(const Volume<Number>& volume, const Cut& cut, Draw& draw, Crew& crew) {
  const Slab<Number> slab = slab_of(volume.voxels(), cut);
  const ViewCamera camera = draw.camera();
  const ViewLook look = draw.look();
  const auto interpolation = static_cast<Interpolation>(draw.below(3));
  const int32_t level = draw.below(3);
  const Contrast contrast = {static_cast<float>(volume.at(0, 0, 0)), static_cast<float>(volume.at(0, 0, 0)) + 90};
  CAPTURE(static_cast<int>(cut.axis));
  CAPTURE(static_cast<int>(interpolation));
  CAPTURE(level);
  CAPTURE(camera.zoom);
  CAPTURE(camera.angles[2]);

  PlanePyramid<Element> pyramid(1 << 20);
  pyramid.begin(source_of<Number, Element>(slab, cut.projection));
  const SliceView view(camera, kWidth, kHeight, slab.size);
  const Region region = region_of_interest(view.corners(), slab.size, level, {16, 1, 4}, {});
  std::vector<uint8_t> picture(size_t{kWidth} * kHeight * 3, 77);
  paint_slice(pyramid.part(level, region, crew), level, view, interpolation, Tone(contrast, look, "gray"),
              picture.data(), size_t{kWidth} * 3, crew);

  const SlowPlane plane = slow_plane(volume, cut);
  SlowPlane shown = plane;
  for (int32_t n = 0; n < level; ++n) shown = halved(shown, !std::is_same_v<Element, float>);
  double worst = 0;
  for (uint32_t y = 0; y < kHeight; ++y)
    for (uint32_t x = 0; x < kWidth; ++x) {
      const double expected = slow_gray(plane, shown, level, camera, interpolation, contrast, look, x + 0.5, y + 0.5);
      for (size_t channel = 0; channel < 3; ++channel)
        worst = std::max(worst, std::abs(expected - picture[(size_t{y} * kWidth + x) * 3 + channel]));
    }
  CHECK(worst <= 1);
}

template <class Number>
void compare_with_slow() {
  Draw draw;
  Crew crew(2);
  const Volume<Number> volume(33, 71, 90, draw.random);
  for (int n = 0; n < 120; ++n) {
    CAPTURE(n);
    Cut cut;
    cut.axis = static_cast<Axis>(draw.below(3));
    cut.position = draw.below(planes_across(cut.axis, volume.depth, volume.height, volume.width));
    cut.thickness = draw.below(2) ? 1 : 1 + draw.below(12);
    cut.projection = static_cast<Projection>(draw.below(3));
    if (cut.projection == Projection::mean && slab_of(volume.voxels(), cut).count > 1)
      compare_one<Number, float>(volume, cut, draw, crew);
    else
      compare_one<Number, Number>(volume, cut, draw, crew);
  }
}

TEST_CASE("slices are within one step of a slow program in double precision, for random cameras, cuts and looks") {
  SUBCASE("8 bits") { compare_with_slow<uint8_t>(); }
  SUBCASE("16 bits") { compare_with_slow<uint16_t>(); }
  SUBCASE("floats") { compare_with_slow<float>(); }
}

TEST_CASE("level 0 at zoom 1, as large as the picture, shows each value through contrast and map") {
  Draw draw;
  Crew crew(2);
  const Volume<uint16_t> volume(kHeight, 3, kWidth, draw.random);
  const Slab<uint16_t> slab = slab_of(volume.voxels(), {Axis::y, 1, 1, Projection::mean});
  const SliceView view({}, kWidth, kHeight, slab.size);
  const Contrast contrast = {1000, 60'000};
  std::vector<uint8_t> picture(size_t{kWidth} * kHeight * 3);
  const Part<uint16_t> part = {slab.first, slab.to_below, {0, 0, slab.size.width, slab.size.height}};
  CHECK(slab.is_plain());
  const auto colours = colour_map("turbo");
  for (const float gamma : {1.0F, 0.3F}) {
    ViewLook look;
    look.gamma = gamma;
    paint_slice(part, 0, view, Interpolation::nearest, Tone(contrast, look, "turbo"), picture.data(),
                size_t{kWidth} * 3, crew);
    size_t different = 0;
    for (uint32_t y = 0; y < kHeight; ++y)
      for (uint32_t x = 0; x < kWidth; ++x) {
        const auto value = static_cast<float>(volume.at(static_cast<int32_t>(y), 1, static_cast<int32_t>(x)));
        const float line = std::clamp((value - contrast.low) * (1 / (contrast.high - contrast.low)), 0.0F, 1.0F);
        const auto level = static_cast<size_t>(std::rint((gamma == 1 ? line : std::pow(line, gamma)) * 255));
        for (size_t channel = 0; channel < 3; ++channel)
          different += picture[(size_t{y} * kWidth + x) * 3 + channel] != colours[3 * level + channel];
      }
    CHECK(different == 0);
  }
}

TEST_CASE("the whole plane fits the picture at zoom 1, and a pan moves it by as many pixels") {
  ViewCamera camera;
  const SliceView all(camera, 60, 44, {90, 33});
  CHECK(all.through(0, 22).x == doctest::Approx(0));
  CHECK(all.through(60, 22).x == doctest::Approx(90));
  CHECK(all.through(30, 22).y == doctest::Approx(16.5));
  CHECK(all.pixels() == doctest::Approx(60.0 / 90));
  camera.center[0] = 7; // seven pixels of the scene to the right
  const SliceView moved(camera, 60, 44, {90, 33});
  CHECK(moved.through(10, 5).x == doctest::Approx(all.through(17, 5).x));
}

TEST_CASE("what is not a number is black, and infinite values are the ends of the map") {
  const float infinite = std::numeric_limits<float>::infinity();
  const float values[] = {std::numeric_limits<float>::quiet_NaN(), infinite, -infinite, 0.5F};
  for (const float gamma : {1.0F, 2.0F}) {
    ViewLook look;
    look.gamma = gamma;
    uint8_t to[12];
    Tone({0, 1}, look, "gray").paint(values, 4, to);
    CHECK(to[0] == 0);
    CHECK(to[3] == 255);
    CHECK(to[6] == 0);
    CHECK(to[9] == (gamma == 1 ? 128 : 64));
  }
}

} // namespace
} // namespace millrace::volume::slice_painter_test
