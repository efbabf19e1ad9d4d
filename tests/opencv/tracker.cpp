// The tracker on scenes whose truth is known: straight walks, crossings, gaps, false alarms.
#include "plugins/opencv/tracker.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <set>

#include "tests/seed.h"

namespace {

using millrace::Box;
using millrace::opencv::kTracksMax;
using millrace::opencv::MotionFilter;
using millrace::opencv::overlap;
using millrace::opencv::Tracker;
using millrace::opencv::TrackerSettings;

Box box_at(float x, float y, float width = 40, float height = 80) {
  Box box;
  box.x = x;
  box.y = y;
  box.width = width;
  box.height = height;
  box.score = 0.5f;
  box.label = 0;
  return box;
}

std::vector<Box> shown(const Tracker& tracker) {
  std::vector<Box> boxes(kTracksMax);
  boxes.resize(tracker.write(boxes));
  return boxes;
}

std::vector<Box> step(Tracker& tracker, const std::vector<Box>& detections) {
  tracker.predict();
  tracker.correct(detections);
  return shown(tracker);
}

// The number of the shown box that overlaps `truth` most; -1 where none does.
int64_t id_of(const std::vector<Box>& boxes, const Box& truth) {
  float best = 0;
  int64_t id = -1;
  for (const Box& box : boxes)
    if (overlap(box, truth) > best) {
      best = overlap(box, truth);
      id = box.id;
    }
  return id;
}

} // namespace

TEST_CASE("overlap is shared area by covered area") {
  CHECK(overlap(box_at(0, 0, 10, 10), box_at(0, 0, 10, 10)) == 1.0f);
  CHECK(overlap(box_at(0, 0, 10, 10), box_at(5, 0, 10, 10)) == doctest::Approx(1.0 / 3));
  CHECK(overlap(box_at(0, 0, 10, 10), box_at(2, 2, 5, 5)) == doctest::Approx(0.25));
  CHECK(overlap(box_at(0, 0, 10, 10), box_at(10, 0, 10, 10)) == 0.0f); // they touch
  CHECK(overlap(box_at(0, 0, 0, 0), box_at(0, 0, 0, 0)) == 0.0f);      // no 0 / 0
}

TEST_CASE("a motion filter learns the speed of what moves evenly") {
  MotionFilter filter(0, 1, 5);
  for (int t = 1; t <= 40; ++t) {
    filter.predict(0.05);
    filter.correct(3.0 * t, 1);
  }
  CHECK(filter.velocity() == doctest::Approx(3).epsilon(0.01));
  CHECK(filter.position() == doctest::Approx(120).epsilon(0.01));
}

TEST_CASE("a motion filter errs less than what it is given") {
  const uint32_t seed = millrace::random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, 4);
  MotionFilter filter(0, 4, 5);
  double filtered = 0, measured = 0;
  for (int t = 1; t <= 2000; ++t) {
    const double truth = 2.0 * t, seen = truth + noise(random);
    filter.predict(0.1);
    filter.correct(seen, 4);
    filtered += (filter.position() - truth) * (filter.position() - truth);
    measured += (seen - truth) * (seen - truth);
  }
  CHECK(filtered < measured / 2); // the theory says about a fifth
}

TEST_CASE("two who cross keep their numbers, also with noise and a detector that looks at every third tick") {
  const uint32_t seed = millrace::random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  std::normal_distribution<float> noise(0, 1.0f);
  for (int trial = 0; trial < 20; ++trial) {
    Tracker tracker;
    std::array<int64_t, 2> first = {-1, -1};
    for (int t = 0; t < 90; ++t) {
      const auto time = static_cast<float>(t);
      const std::array<Box, 2> truth = {box_at(20 + 4 * time, 100), box_at(380 - 4 * time, 112)};
      tracker.predict();
      if (t % 3 == 0) {
        std::vector<Box> seen(truth.begin(), truth.end());
        for (Box& box : seen) box.x += noise(random), box.y += noise(random);
        if (trial % 2) std::swap(seen[0], seen[1]); // the order of detections says nothing
        tracker.correct(seen);
      }
      const std::vector<Box> boxes = shown(tracker);
      if (t == 15)
        for (size_t i = 0; i < 2; ++i) first[i] = id_of(boxes, truth[i]);
    }
    const std::vector<Box> boxes = shown(tracker);
    INFO("trial ", trial);
    REQUIRE(boxes.size() == 2);
    CHECK(first[0] != first[1]);
    CHECK(id_of(boxes, box_at(20 + 4 * 89, 100)) == first[0]);
    CHECK(id_of(boxes, box_at(380 - 4 * 89, 112)) == first[1]);
  }
}

TEST_CASE("a box that the detector does not look for moves on at its speed") {
  Tracker tracker;
  for (int t = 0; t <= 20; ++t) step(tracker, {box_at(10 + 3 * static_cast<float>(t), 50)});
  for (int t = 0; t < 5; ++t) tracker.predict();
  const std::vector<Box> boxes = shown(tracker);
  REQUIRE(boxes.size() == 1);
  CHECK(boxes[0].x == doctest::Approx(10 + 3 * 25).epsilon(0.02));
}

TEST_CASE("a track outlives max_age ticks without a detection, not one more, and its number is not given again") {
  Tracker tracker({.overlap_min = 0.3, .age_max = 4, .hits_min = 1});
  CHECK(step(tracker, {box_at(0, 0)})[0].id == 1);
  for (int t = 0; t < 4; ++t) CHECK(step(tracker, {}).size() == 1);
  CHECK(step(tracker, {}).empty());
  CHECK(step(tracker, {box_at(0, 0)})[0].id == 2);
}

TEST_CASE("a track is shown from its min_hits-th detection on, and one miss before that ends it") {
  Tracker tracker({.overlap_min = 0.3, .age_max = 10, .hits_min = 3});
  CHECK(step(tracker, {box_at(0, 0)}).empty());
  CHECK(step(tracker, {box_at(0, 0)}).empty());
  CHECK(step(tracker, {}).empty());
  CHECK(step(tracker, {box_at(0, 0)}).empty());
  CHECK(step(tracker, {box_at(0, 0)}).empty());
  const std::vector<Box> boxes = step(tracker, {box_at(0, 0)});
  REQUIRE(boxes.size() == 1);
  CHECK(boxes[0].id == 1); // numbers are not spent on false alarms
}

TEST_CASE("a detection of another class or with too little overlap begins a track of its own") {
  Tracker tracker({.overlap_min = 0.3, .age_max = 10, .hits_min = 1});
  step(tracker, {box_at(0, 0)});
  Box bicycle = box_at(0, 0);
  bicycle.label = 1;
  CHECK(step(tracker, {bicycle}).size() == 2);
  CHECK(step(tracker, {box_at(30, 0)}).size() == 3); // overlap 1/7
}

TEST_CASE("what has no area begins no track") {
  Tracker tracker({.overlap_min = 0.3, .age_max = 10, .hits_min = 1});
  CHECK(step(tracker, {box_at(0, 0, 0, 10), box_at(0, 0, 10, 0)}).empty());
}

TEST_CASE("a tracker holds 256 tracks and ignores what would be one more") {
  Tracker tracker({.overlap_min = 0.3, .age_max = 10, .hits_min = 1});
  std::vector<Box> crowd;
  for (int i = 0; i < 300; ++i)
    crowd.push_back(box_at(static_cast<float>(i % 20 * 50), static_cast<float>(i / 20 * 90)));
  const std::vector<Box> boxes = step(tracker, crowd);
  CHECK(boxes.size() == kTracksMax);
  std::set<int64_t> numbers;
  for (const Box& box : boxes) numbers.insert(box.id);
  CHECK(numbers.size() == kTracksMax);
  CHECK(step(tracker, crowd).size() == kTracksMax);
}

TEST_CASE("a cleared tracker follows nobody and goes on with its numbers") {
  Tracker tracker({.overlap_min = 0.3, .age_max = 10, .hits_min = 1});
  step(tracker, {box_at(0, 0)});
  tracker.clear();
  CHECK(shown(tracker).empty());
  CHECK(step(tracker, {box_at(0, 0)})[0].id == 2);
}
