// The disc against finely sampled areas, its paths against their definition, and draw.marker as a pipeline drives it.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "builtin.h"
#include "handlers/draw/disc.h"
#include "ink.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;

namespace {

// The share of pixel (x, y) that lies in the disc, of 32 x 32 samples.
double covered_area(uint32_t x, uint32_t y, Spot centre, double radius) {
  constexpr int kSamples = 32;
  int inside = 0;
  for (int j = 0; j < kSamples; ++j)
    for (int i = 0; i < kSamples; ++i)
      inside += std::hypot(x + (i + 0.5) / kSamples - centre.x, y + (j + 0.5) / kSamples - centre.y) <= radius;
  return static_cast<double>(inside) / (kSamples * kSamples);
}

// The middle of what is bright in a gray picture.
Spot brightness_centre(const ImageView& picture) {
  double sum = 0, x_sum = 0, y_sum = 0;
  for (uint32_t y = 0; y < picture.height(); ++y)
    for (uint32_t x = 0; x < picture.width(); ++x) {
      const double value = picture.row(y)[x];
      sum += value;
      x_sum += value * (x + 0.5);
      y_sum += value * (y + 0.5);
    }
  return {x_sum / sum, y_sum / sum};
}

} // namespace

TEST_CASE("a disc covers each pixel by its share of the area, nearly, and its edge is smooth") {
  for (const auto& [centre, radius] :
       {std::pair{Spot{20, 15}, 9.0}, {Spot{20.3, 14.8}, 2.0}, {Spot{19.5, 15.5}, 11.37}}) {
    Picture picture(Pixel::gray8, 40, 30);
    draw_disc(picture.span(), centre, radius, ink_of(kWhite, Pixel::gray8));
    double worst = 0, sum = 0;
    uint32_t between = 0;
    for (uint32_t y = 0; y < 30; ++y)
      for (uint32_t x = 0; x < 40; ++x) {
        const uint8_t value = picture.view().row(y)[x];
        worst = std::max(worst, std::abs(value / 255.0 - covered_area(x, y, centre, radius)));
        sum += value / 255.0;
        between += value > 0 && value < 255;
      }
    INFO("radius " << radius);
    CHECK(worst < 0.1);
    CHECK(sum == doctest::Approx(std::numbers::pi * radius * radius).epsilon(0.02));
    CHECK(between >= 8);
  }
}

TEST_CASE("a disc that leaves the picture, is larger or far away paints what is inside and nothing else") {
  for (const auto& [centre, radius] : {std::pair{Spot{-2, 3}, 5.0},
                                       {Spot{8, 4}, 4000.0},
                                       {Spot{1e9, -1e9}, 3.0},
                                       {Spot{16, 8}, 0.5},
                                       {Spot{0.5, 0.5}, 0.5}}) {
    Picture picture = random_picture(Pixel::rgb8, 16, 8, 91);
    const Picture before = random_picture(Pixel::rgb8, 16, 8, 91);
    draw_disc(picture.span(), centre, radius, ink_of(kWhite, Pixel::rgb8));
    uint32_t wrong = 0;
    for (uint32_t y = 0; y < 8; ++y)
      for (uint32_t i = 0; i < picture.view().stride(); ++i) {
        const double far = std::hypot(i / 3 + 0.5 - centre.x, y + 0.5 - centre.y) - radius;
        const uint8_t wanted = far < -0.5 && i < 48 ? uint8_t{255} : before.view().row(y)[i];
        wrong += (far < -0.5 || far > 0.5 || i >= 48) && picture.view().row(y)[i] != wanted;
      }
    INFO("radius " << radius);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a phase goes from 0 to 1 in a period, for any time") {
  CHECK(phase_at(0, 4) == 0);
  CHECK(phase_at(3, 4) == 0.75);
  CHECK(phase_at(4'000'000'003, 4) == 0.75);
  CHECK(phase_at(-1, 4) == 0.75);
  CHECK(phase_at(std::numeric_limits<int64_t>::min(), 3) >= 0);
  CHECK(phase_at(std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()) == 0);
}

TEST_CASE("paths begin and turn where they should, close, and keep their margin") {
  const auto at = [](MarkerPath path, double phase) { return marker_spot(path, phase, 200, 100, 10); };
  CHECK(at(MarkerPath::circle, 0).x == doctest::Approx(140));
  CHECK(at(MarkerPath::circle, 0.25).y == doctest::Approx(90));
  CHECK(at(MarkerPath::line, 0).x == doctest::Approx(10));
  CHECK(at(MarkerPath::line, 0.5).x == doctest::Approx(190));
  CHECK(at(MarkerPath::eight, 0.125).y == doctest::Approx(90));
  CHECK(at(MarkerPath::eight, 0.5).x == doctest::Approx(10));
  CHECK(at(MarkerPath::still, 0.3).x == 100);
  for (MarkerPath path : {MarkerPath::circle, MarkerPath::eight, MarkerPath::line, MarkerPath::still})
    for (double phase = 0; phase < 1; phase += 0.01) {
      const Spot spot = at(path, phase), next = at(path, phase + 0.01);
      REQUIRE(spot.x >= 10 - 1e-9);
      REQUIRE(spot.x <= 190 + 1e-9);
      REQUIRE(spot.y >= 10 - 1e-9);
      REQUIRE(spot.y <= 90 + 1e-9);
      REQUIRE(std::hypot(next.x - spot.x, next.y - spot.y) < 8);
    }
  CHECK(marker_spot(MarkerPath::circle, 0.4, 1, 1, 50).x == 0.5);
}

TEST_CASE("a pulse takes its share of the radius and gives it back") {
  CHECK(pulsed_radius(20, 0.3, 0) == doctest::Approx(20));
  CHECK(pulsed_radius(20, 0.3, 0.5) == doctest::Approx(14));
  CHECK(pulsed_radius(20, 0.3, 0.25) == doctest::Approx(17));
  CHECK(pulsed_radius(20, 1, 0.5) == doctest::Approx(0));
}

TEST_CASE("draw.marker is where the media time says, whatever was drawn before") {
  TableTest marker(builtin("draw.marker"), {{"color", "#ffffff"}, {"radius", "6"}, {"period", "2"}, {"pulse", "0"}});
  constexpr int64_t kPeriod = 100'000'000; // twenty ticks a round
  marker.period_ns(kPeriod);
  for (int64_t i = 0; i < 25; ++i) {
    marker.input("video", testing::image(Pixel::gray8, 120, 80, 0).at(i * 7));
    const Result result = marker.tick();
    REQUIRE(result.ok());
    const Spot wanted = marker_spot(MarkerPath::circle, phase_at(i * kPeriod, 2'000'000'000), 120, 80, 6.5);
    const Spot found = brightness_centre(result.image("video"));
    INFO("tick " << i);
    CHECK(found.x == doctest::Approx(wanted.x).epsilon(0.002));
    CHECK(found.y == doctest::Approx(wanted.y).epsilon(0.002));
    CHECK(result.image("video").header().pts_ns == i * 7);
  }
}

TEST_CASE("draw.marker draws in the order of each format's channels, and refuses what is no colour") {
  for (Pixel pixel : {Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8}) {
    TableTest marker(builtin("draw.marker"), {{"color", "#0a141e"}, {"path", "still"}});
    marker.input("video", testing::image(pixel, 60, 60, 200));
    const Result result = marker.tick();
    REQUIRE(result.ok());
    const uint8_t* middle = result.image("video").row(30) + 30 * bytes_per_pixel(pixel);
    const bool blue_first = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
    CHECK(middle[blue_first ? 2 : 0] == 0x0a);
    CHECK(middle[1] == 0x14);
    CHECK(middle[blue_first ? 0 : 2] == 0x1e);
    CHECK(result.image("video").row(0)[0] == 200);
  }
  TableTest wrong(builtin("draw.marker"), {{"color", "red"}});
  wrong.input("video", testing::image(Pixel::gray8, 4, 4, 0));
  CHECK(wrong.start() == MR_ERROR);
  CHECK(wrong.error() == "color 'red' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
}
