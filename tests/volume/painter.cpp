// Pictures of volumes beside what is known of them, and beside a slow program in double precision.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "plugins/volume/painter.h"

namespace millrace::volume {
namespace {

constexpr uint32_t kWidth = 60, kHeight = 44;

template <class Number>
struct Volume {
  int32_t width, height, depth;
  std::vector<Number> numbers;

  Volume(int32_t w, int32_t h, int32_t d)
      : width(w),
        height(h),
        depth(d),
        numbers(static_cast<size_t>(w) * static_cast<size_t>(h) * static_cast<size_t>(d)) {}
  Number& at(int32_t x, int32_t y, int32_t z) {
    return numbers[(static_cast<size_t>(z) * static_cast<size_t>(height) + static_cast<size_t>(y)) *
                       static_cast<size_t>(width) +
                   static_cast<size_t>(x)];
  }
  Voxels<Number> voxels() const { return {numbers.data(), width, height, depth}; }
  template <class F>
  void fill(F&& f) {
    for (int32_t z = 0; z < depth; ++z)
      for (int32_t y = 0; y < height; ++y)
        for (int32_t x = 0; x < width; ++x) at(x, y, z) = static_cast<Number>(f(x, y, z));
  }
};

// Waves that end in nothing at the border, so that a ray that only grazes the box shows nothing whoever rounds how.
Volume<uint8_t> waves() {
  Volume<uint8_t> volume(40, 36, 50);
  volume.fill([&](int32_t x, int32_t y, int32_t z) {
    const double part[3] = {(x + 0.5) / volume.width, (y + 0.5) / volume.height, (z + 0.5) / volume.depth};
    double inside = 1;
    for (const double at : part) inside *= std::sin(3.14159265358979 * at);
    return std::lround(255 * inside * (0.5 + 0.5 * std::sin(0.4 * x + 0.3 * y) * std::cos(0.35 * z)));
  });
  return volume;
}

Settings settings(Mode mode, const char* map = "gray") { return {kWidth, kHeight, mode, map, 0.5F, 1.0F}; }

// A look under which a value of 8 bits is its level.
template <class Number>
ViewLook plain_look(const Survey<Number>& survey) {
  const float range = survey.contrast().high - survey.contrast().low;
  ViewLook look;
  look.low = -survey.contrast().low / range;
  look.high = (255 - survey.contrast().low) / range;
  return look;
}

template <class Number>
std::vector<uint8_t> painted(const Volume<Number>& volume, const Settings& with, const ViewCamera& camera,
                             const ViewLook* look = nullptr) {
  Crew crew(2);
  const Survey<Number> survey(volume.voxels(), crew);
  std::vector<uint8_t> picture(size_t{with.width} * with.height * 3, 77);
  const Sight sight =
      sight_of(with, survey.contrast(), volume.voxels().size(), camera, look ? *look : plain_look(survey));
  paint(volume.voxels(), survey.bricks(), sight, picture.data(), size_t{with.width} * 3, crew);
  return picture;
}

struct Cameras {
  std::mt19937 random{1};
  float between(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); }
  ViewCamera next() {
    ViewCamera camera;
    for (float& place : camera.center) place = between(-5, 5);
    camera.zoom = std::exp(between(-0.7F, 1.5F));
    camera.angles[0] = between(-180, 180);
    camera.angles[1] = between(-90, 90);
    camera.angles[2] = between(-180, 180);
    camera.field_of_view = between(0, 1) < 0.3F ? 0 : between(20, 70);
    return camera;
  }
};

// ---- the slow program

struct Exact {
  double x, y, z;
};
Exact sum(Exact a, Exact b, double by = 1) { return {a.x + by * b.x, a.y + by * b.y, a.z + by * b.z}; }
double length(Exact a) { return std::sqrt(a.x * a.x + a.y * a.y + a.z * a.z); }

// The scene turns by the azimuth about the picture's downward axis, by the elevation about that to the right, and by
// the roll about that away from the eye. `away` is the way back.
Exact turned_back(const ViewCamera& camera, Exact p) {
  const auto of = [](float degrees) { return degrees * 3.14159265358979323846 / 180; };
  const double roll = of(camera.angles[2]), elevation = of(camera.angles[1]), azimuth = of(camera.angles[0]);
  p = {std::cos(roll) * p.x + std::sin(roll) * p.y, -std::sin(roll) * p.x + std::cos(roll) * p.y, p.z};
  p = {p.x, std::cos(elevation) * p.y + std::sin(elevation) * p.z,
       -std::sin(elevation) * p.y + std::cos(elevation) * p.z};
  return {std::cos(azimuth) * p.x + std::sin(azimuth) * p.z, p.y, -std::sin(azimuth) * p.x + std::cos(azimuth) * p.z};
}

double value_at(const Voxels<uint8_t>& voxels, Exact p) {
  const auto value = [&](double x, double y, double z) {
    const auto within = [](double at, int32_t count) { return static_cast<int32_t>(std::clamp(at, 0.0, count - 1.0)); };
    return double{voxels.at(within(x, voxels.width), within(y, voxels.height), within(z, voxels.depth))};
  };
  const double x = std::floor(p.x - 0.5), y = std::floor(p.y - 0.5), z = std::floor(p.z - 0.5);
  double mixed = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const int i = corner & 1, j = corner >> 1 & 1, k = corner >> 2;
    const auto weight = [](double part, int high) { return high ? part : 1 - part; };
    mixed +=
        weight(p.x - 0.5 - x, i) * weight(p.y - 0.5 - y, j) * weight(p.z - 0.5 - z, k) * value(x + i, y + j, z + k);
  }
  return mixed;
}

// The samples of the ray through the middle of a pixel.
std::vector<double> samples(const Voxels<uint8_t>& voxels, const ViewCamera& camera, double x, double y) {
  const Exact size = {double{voxels.size().x}, double{voxels.size().y}, double{voxels.size().z}};
  const double voxel = length(size) / std::min(kWidth, kHeight);
  const Exact middle =
      sum({size.x / 2, size.y / 2, size.z / 2}, {camera.center[0], camera.center[1], camera.center[2]}, voxel);
  const Exact point = sum(middle, turned_back(camera, {x - kWidth / 2.0, y - kHeight / 2.0, 0}), voxel / camera.zoom);
  const Exact forward = turned_back(camera, {0, 0, 1});
  Exact origin = sum(point, forward, -1000), direction = forward;
  if (camera.field_of_view > 0) {
    const double half = camera.field_of_view * 3.14159265358979323846 / 360;
    origin = sum(middle, forward, -(kHeight / 2.0 * voxel / camera.zoom / std::tan(half)));
    const Exact way = sum(point, origin, -1);
    direction = {way.x / length(way), way.y / length(way), way.z / length(way)};
  }
  double begin = 0, end = 1e9;
  const double from[3] = {origin.x, origin.y, origin.z}, along[3] = {direction.x, direction.y, direction.z};
  const double most[3] = {size.x, size.y, size.z};
  for (int axis = 0; axis < 3; ++axis) {
    const double one = -from[axis] / along[axis], other = (most[axis] - from[axis]) / along[axis];
    begin = std::max(begin, std::min(one, other));
    end = std::min(end, std::max(one, other));
  }
  std::vector<double> found;
  for (double at = begin + 0.5; at < end; at += 1) found.push_back(value_at(voxels, sum(origin, direction, at)));
  return found;
}

template <class Shown>
void compare_with_slow(Mode mode, double apart_max, Shown&& shown) {
  const Volume<uint8_t> volume = waves();
  Cameras cameras;
  for (int n = 0; n < 30; ++n) {
    CAPTURE(n);
    const ViewCamera camera = cameras.next();
    const std::vector<uint8_t> picture = painted(volume, settings(mode), camera);
    double worst = 0;
    for (uint32_t y = 0; y < kHeight; ++y)
      for (uint32_t x = 0; x < kWidth; ++x) {
        const double expected = shown(samples(volume.voxels(), camera, x + 0.5, y + 0.5));
        worst = std::max(worst, std::abs(expected - picture[(size_t{y} * kWidth + x) * 3]));
      }
    CHECK(worst <= apart_max);
  }
}

TEST_CASE("the maximum along a ray is that of a slow program in double precision, for 30 cameras") {
  // A sample's place along the ray depends on where the ray enters, which single precision knows to some 1e-5 voxels.
  compare_with_slow(Mode::maximum, 1.5, [](const std::vector<double>& values) {
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  });
}

TEST_CASE("the average along a ray is that of a slow program in double precision, for 30 cameras") {
  compare_with_slow(Mode::average, 1.5, [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  });
}

// ---- what is known

TEST_CASE("bricks that are passed over change no pixel") {
  Volume<uint8_t> volume = waves();
  volume.fill([&](int32_t x, int32_t y, int32_t z) { // much of it is empty
    const bool is_full = (x / 16 + y / 16 + z / 16) % 3 == 0;
    return is_full ? 40 + (x * 7 + y * 13 + z * 5) % 200 : 0;
  });
  Crew crew(1);
  const Survey<uint8_t> survey(volume.voxels(), crew);
  const std::vector<float> infinite(1000, 3e38F);
  Bricks none = survey.bricks();
  none.greatest = infinite.data();
  const Vector size = volume.voxels().size();
  Cameras cameras;
  for (const Mode mode : {Mode::maximum, Mode::translucent, Mode::average, Mode::iso})
    for (int n = 0; n < 10; ++n) {
      CAPTURE(static_cast<int>(mode));
      Shading shading = {mode, 30, 1 / 200.0F, 1, 0.3F, 0.4F, 0.7F, {}};
      std::fill(std::begin(shading.colours), std::end(shading.colours), uint8_t{200});
      const Rays rays(cameras.next(), kWidth, kHeight, size);
      const Crop crop = n % 2 ? Crop{{}, size} : Crop{size * 0.2F, size * 0.7F};
      size_t different = 0;
      for (uint32_t y = 0; y < kHeight; ++y)
        for (uint32_t x = 0; x < kWidth; ++x) {
          const Ray ray = rays.through(static_cast<float>(x), static_cast<float>(y));
          const Colour one = shown_by(volume.voxels(), survey.bricks(), shading, ray, crop);
          const Colour other = shown_by(volume.voxels(), none, shading, ray, crop);
          different += one.red != other.red || one.green != other.green || one.blue != other.blue;
        }
      CHECK(different == 0);
    }
}

TEST_CASE("fog of one density hides by its depth") {
  Volume<uint8_t> volume(64, 64, 32);
  volume.fill([](int32_t, int32_t, int32_t) { return 128; });
  ViewCamera camera;
  camera.field_of_view = 0;
  camera.zoom = 4;
  Crew crew(1);
  ViewLook look = plain_look(Survey<uint8_t>(volume.voxels(), crew));
  look.opacity = 0.05F;
  const std::vector<uint8_t> picture = painted(volume, settings(Mode::translucent), camera, &look);
  const double level = 128 / 255.0, expected = (1 - std::pow(1 - 0.05 * level, 32)) * 128;
  CHECK(std::abs(picture[(size_t{kHeight} / 2 * kWidth + kWidth / 2) * 3] - expected) <= 1);
}

TEST_CASE("the surface of a ball is a disc that is brightest in its middle") {
  Volume<float> volume(64, 64, 64);
  volume.fill([](int32_t x, int32_t y, int32_t z) {
    const double radius = std::sqrt(std::pow(x - 31.5, 2) + std::pow(y - 31.5, 2) + std::pow(z - 31.5, 2));
    return std::clamp(255 * (0.5 + (20 - radius) / 8), 0.0, 255.0);
  });
  ViewCamera camera;
  camera.field_of_view = 0;
  const std::vector<uint8_t> picture = painted(volume, settings(Mode::iso), camera);
  const double pixels = 20 * std::min(kWidth, kHeight) / (64 * std::sqrt(3.0)); // the ball's radius
  const uint8_t middle = picture[(size_t{kHeight} / 2 * kWidth + kWidth / 2) * 3];
  CHECK(middle >= 250);
  for (uint32_t y = 0; y < kHeight; ++y)
    for (uint32_t x = 0; x < kWidth; ++x) {
      const double from_middle = std::hypot(x + 0.5 - kWidth / 2.0, y + 0.5 - kHeight / 2.0);
      const uint8_t light = picture[(size_t{y} * kWidth + x) * 3];
      if (from_middle > pixels + 0.5) CHECK(light == 0);
      if (from_middle < pixels - 0.5) CHECK(light > 40);
      CHECK(light <= middle);
    }
}

TEST_CASE("numbers of 8, 16 and 32 bits of one volume give one picture") {
  const Volume<uint8_t> small = waves();
  Volume<uint16_t> wide(small.width, small.height, small.depth);
  Volume<float> real(small.width, small.height, small.depth);
  std::copy(small.numbers.begin(), small.numbers.end(), wide.numbers.begin());
  std::copy(small.numbers.begin(), small.numbers.end(), real.numbers.begin());
  Cameras cameras;
  for (const Mode mode : {Mode::maximum, Mode::translucent, Mode::average, Mode::iso}) {
    const ViewCamera camera = cameras.next();
    const std::vector<uint8_t> picture = painted(small, settings(mode, "viridis"), camera);
    CHECK(picture == painted(wide, settings(mode, "viridis"), camera));
    CHECK(picture == painted(real, settings(mode, "viridis"), camera));
  }
}

TEST_CASE("while the camera moves, blocks of four pixels have the colour of their middle") {
  const Volume<uint8_t> volume = waves();
  ViewCamera camera = Cameras().next();
  Settings with = settings(Mode::maximum);
  with.width = kWidth - 1; // odd
  camera.moving = 1;
  const std::vector<uint8_t> picture = painted(volume, with, camera);
  for (uint32_t y = 0; y < with.height; ++y)
    for (uint32_t x = 0; x < with.width; ++x)
      CHECK(picture[(size_t{y} * with.width + x) * 3] == picture[(size_t{y / 2 * 2} * with.width + x / 2 * 2) * 3]);
}

TEST_CASE("a volume fits the picture at zoom 1 however it is turned, and a pan moves it by as many pixels") {
  const Volume<uint8_t> volume = waves();
  Cameras cameras;
  for (int n = 0; n < 30; ++n) {
    ViewCamera camera = cameras.next();
    camera.field_of_view = 0;
    const Vector size = volume.voxels().size();
    const Rays before(camera, kWidth, kHeight, size);
    const ViewAxes axes = axes_of(camera);
    for (int axis = 0; axis < 3; ++axis)
      camera.center[axis] += (3 * axes.right[axis] - 2 * axes.down[axis]) / camera.zoom;
    const Rays after(camera, kWidth, kHeight, size);
    const Ray one = before.through(13, 12), other = after.through(10, 14);
    const Vector apart = one.origin - other.origin;
    const float along = product(apart, one.direction);
    CHECK(product(apart, apart) - along * along < 1e-3F);

    camera = cameras.next();
    std::fill(std::begin(camera.center), std::end(camera.center), 0.0F);
    camera.zoom = 1;
    camera.field_of_view = 0;
    const std::vector<uint8_t> picture = painted(volume, settings(Mode::maximum), camera);
    for (uint32_t y = 0; y < kHeight; ++y) { // beyond the smaller side there is nothing
      CHECK(picture[size_t{y} * kWidth * 3] == 0);
      CHECK(picture[(size_t{y} * kWidth + kWidth - 1) * 3] == 0);
    }
  }
}

TEST_CASE("the first contrast leaves out half a hundredth at each end of the middle plane") {
  Volume<uint16_t> volume(100, 100, 3);
  volume.fill([](int32_t x, int32_t y, int32_t z) { return z == 1 ? y * 100 + x : 60'000; });
  Crew crew(1);
  const Contrast contrast = Survey<uint16_t>(volume.voxels(), crew).contrast();
  CHECK(std::abs(contrast.low - 50) <= 1);
  CHECK(std::abs(contrast.high - 9949) <= 1);
  Volume<uint8_t> flat(4, 4, 4);
  CHECK(Survey<uint8_t>(flat.voxels(), crew).contrast().high == 1);
}

TEST_CASE("a crop shows what a volume would show that has nothing else") {
  Volume<uint8_t> volume = waves();
  Volume<uint8_t> part = volume; // with nothing outside of the crop
  part.fill([&](int32_t x, int32_t y, int32_t z) {
    const bool is_within = x >= 10 && x < 30 && y >= 9 && y < 27 && z >= 25;
    return is_within ? volume.at(x, y, z) : 0;
  });
  Crew crew(1);
  ViewLook look = plain_look(Survey<uint8_t>(volume.voxels(), crew));
  ViewLook cropped = look;
  cropped.crop_low[0] = cropped.crop_low[1] = 0.25F;
  cropped.crop_high[0] = cropped.crop_high[1] = 0.75F;
  cropped.crop_low[2] = 0.5F;
  const Vector size = volume.voxels().size();
  ViewCamera camera; // a pixel for each voxel: samples lie at the middles of voxels
  camera.field_of_view = 0;
  camera.zoom = std::sqrt(product(size, size)) / std::min(kWidth, kHeight);
  const std::vector<uint8_t> one = painted(volume, settings(Mode::maximum), camera, &cropped);
  const std::vector<uint8_t> other = painted(part, settings(Mode::maximum), camera, &look);
  CHECK(one != painted(volume, settings(Mode::maximum), camera, &look));
  CHECK(one != std::vector<uint8_t>(one.size(), 0));
  CHECK(one == other);
  cropped.crop_low[2] = cropped.crop_high[2] = 1; // nothing is left
  CHECK(painted(volume, settings(Mode::translucent), camera, &cropped) == std::vector<uint8_t>(one.size(), 0));
}

TEST_CASE("the histogram has each level of the middle plane once, in the part where it lies") {
  Volume<uint16_t> volume(16, 16, 3);
  volume.fill([](int32_t x, int32_t y, int32_t z) { return z == 1 ? y * 16 + x : 40'000; }); // 0 to 255 once each
  std::vector<uint32_t> counts(8, 99);
  count_levels(volume.voxels(), {0, 256}, 0, 1, counts);
  CHECK(counts == std::vector<uint32_t>(8, 32));
  count_levels(volume.voxels(), {0, 256}, -0.5F, 1.5F, counts);
  CHECK(counts == std::vector<uint32_t>{0, 0, 64, 64, 64, 64, 0, 0});
  count_levels(volume.voxels(), {64, 128}, -0.5F, 1.5F, counts); // those below 32 and above 160 are not in it
  CHECK(counts == std::vector<uint32_t>{16, 16, 16, 16, 16, 16, 16, 17});
  Volume<float> real(4, 4, 1);
  real.fill([](int32_t x, int32_t, int32_t) { return x == 0 ? std::nanf("") : 0.5F; });
  count_levels(real.voxels(), {0, 1}, 0, 1, counts);
  CHECK(counts == std::vector<uint32_t>{0, 0, 0, 0, 12, 0, 0, 0});
}

} // namespace
} // namespace millrace::volume
