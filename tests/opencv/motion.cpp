// Motion: what is found before a background that is learnt, what is not, and where.
#include "plugins/opencv/motion.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <opencv2/imgproc.hpp>

#include "tests/opencv/plugin.h"

namespace millrace::opencv {
namespace {

using testing::Result;
using testing::TableTest;

// A camera's picture of noise around 120, the same noise for the same `tick`.
cv::Mat noisy_scene(uint64_t tick, const std::vector<cv::Rect>& things = {}) {
  cv::Mat picture(288, 384, CV_8UC1, cv::Scalar(120));
  for (const cv::Rect& thing : things) cv::rectangle(picture, thing, cv::Scalar(200), cv::FILLED);
  cv::Mat noise(picture.size(), CV_8UC1);
  cv::RNG random(tick + 1);
  random.fill(noise, cv::RNG::UNIFORM, 0, 30);
  return picture + noise - 15;
}

MotionSettings settings_of_test() {
  MotionSettings settings;
  settings.width = 0;
  settings.memory = 50;
  return settings;
}

bool is_near(const Box& box, const cv::Rect& thing, double pixels) {
  const double right = double{box.x} + box.width, bottom = double{box.y} + box.height;
  return std::abs(double{box.x} - thing.x) <= pixels && std::abs(double{box.y} - thing.y) <= pixels &&
         std::abs(right - thing.br().x) <= pixels && std::abs(bottom - thing.br().y) <= pixels;
}

} // namespace

TEST_CASE("noise of a camera is no motion, and neither is the first picture") {
  MotionDetector detector;
  CHECK(detector.detect(noisy_scene(0, {{50, 50, 40, 80}}), settings_of_test(), 9).empty());
  for (uint64_t tick = 1; tick < 40; ++tick)
    CHECK(detector.detect(noisy_scene(tick, {{50, 50, 40, 80}}), settings_of_test(), 9).empty());
}

TEST_CASE("things that move are boxed where they are, the largest first, whatever the picture is reduced to") {
  for (const int width : {0, 192, 1000}) {
    CAPTURE(width);
    MotionDetector detector;
    MotionSettings settings = settings_of_test();
    settings.width = width;
    for (uint64_t tick = 0; tick < 10; ++tick) detector.detect(noisy_scene(tick), settings, 9);
    for (int step = 0; step < 10; ++step) {
      const cv::Rect large(20 + 30 * step, 100, 40, 90), small(340 - 30 * step, 20, 30, 30);
      const std::vector<Box> boxes =
          detector.detect(noisy_scene(static_cast<uint64_t>(10 + step), {large, small}), settings, 9);
      REQUIRE(boxes.size() == 2); // and no ghosts of earlier places
      CHECK(is_near(boxes[0], large, 6));
      CHECK(is_near(boxes[1], small, 6));
      CHECK(boxes[0].score > 0.8);
    }
    const cv::Rect one(100, 100, 40, 90);
    CHECK(detector.detect(noisy_scene(99, {one}), settings, 1).size() == 1);
  }
}

TEST_CASE("changes that are close are one thing, and small ones are none") {
  const std::vector<cv::Rect> parts = {{100, 100, 30, 30}, {100, 140, 30, 30}}; // 10 pixels apart
  const auto found = [&](int join, double area_min) {
    MotionDetector detector;
    MotionSettings settings = settings_of_test();
    settings.join = join;
    settings.area_min = area_min;
    for (uint64_t tick = 0; tick < 5; ++tick) detector.detect(noisy_scene(tick), settings, 9);
    return detector.detect(noisy_scene(5, parts), settings, 9);
  };
  CHECK(found(0, 0.001).size() == 2);
  REQUIRE(found(16, 0.001).size() == 1);
  CHECK(is_near(found(16, 0.001)[0], {100, 100, 30, 70}, 3));
  CHECK(found(16, 0.03).empty()); // 1800 of 110592 pixels
}

TEST_CASE("a thing that stays becomes background in the time of the memory, and what is forgotten is learnt anew") {
  MotionDetector detector;
  const MotionSettings settings = settings_of_test();
  for (uint64_t tick = 0; tick < 60; ++tick) detector.detect(noisy_scene(tick), settings, 9);
  uint64_t seen = 0;
  for (uint64_t tick = 60; tick < 260; ++tick)
    seen += !detector.detect(noisy_scene(tick, {{100, 100, 40, 90}}), settings, 9).empty();
  CHECK(seen >= 8); // of 80 grey levels, 5 a picture, until less than 25 are left
  CHECK(seen <= 16);
  detector.clear();
  CHECK(detector.detect(noisy_scene(0), settings, 9).empty());
}

TEST_CASE("detect.motion gives what its detector finds, and forgets with reset") {
  TableTest test(handler_type("detect.motion"), {{"width", "0"}});
  const auto see = [&](uint64_t tick, const std::vector<cv::Rect>& things) {
    const cv::Mat scene = noisy_scene(tick, things);
    test.input("video", testing::image(Pixel::gray8, 384, 288, [&](uint32_t x, uint32_t y, uint32_t) {
                 return scene.at<uint8_t>(static_cast<int>(y), static_cast<int>(x));
               }));
    const Result result = test.tick();
    REQUIRE_MESSAGE(result.ok(), result.error);
    return result.records<Box>("boxes").size();
  };
  CHECK(see(0, {}) == 0);
  CHECK(see(1, {{100, 100, 40, 90}}) == 1);
  CHECK(test.reset() == MR_OK);
  CHECK(see(2, {{100, 100, 40, 90}}) == 0);
}

} // namespace millrace::opencv
