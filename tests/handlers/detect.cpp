// detect.nms, against brute force.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "builtin.h"
#include "handlers/detect/nms.h"
#include "tests/part.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;

namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

bool same_box(const Box& a, const Box& b) {
  return a.x == b.x && a.y == b.y && a.width == b.width && a.height == b.height && a.score == b.score &&
         a.label == b.label && a.id == b.id;
}
bool same_boxes(std::span<const Box> a, std::span<const Box> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_box);
}

// Intersection over union of boxes of whole pixels, by counting the pixels.
double counted_overlap(const Box& a, const Box& b) {
  const auto is_in = [](const Box& box, int x, int y) {
    return float(x) >= box.x && float(x) < box.x + box.width && float(y) >= box.y && float(y) < box.y + box.height;
  };
  int shared = 0, all = 0;
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 40; ++x) {
      const bool in_a = is_in(a, x, y), in_b = is_in(b, x, y);
      shared += in_a && in_b;
      all += in_a || in_b;
    }
  return double(shared) / all;
}

// Takes the best box that is left, time and again, and drops from the rest what overlaps it.
std::vector<Box> brute_force(std::vector<Box> boxes, const NmsRule& rule, size_t count_max) {
  std::erase_if(boxes, [&](const Box& box) {
    return std::isnan(box.x + box.score) || !(box.score >= rule.score_min) || box.width <= 0 || box.height <= 0;
  });
  std::vector<Box> kept;
  while (!boxes.empty() && kept.size() < count_max) {
    const auto first_best =
        std::max_element(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.score < b.score; });
    const Box best = *first_best;
    boxes.erase(first_best);
    kept.push_back(best);
    std::erase_if(boxes, [&](const Box& box) {
      return (!rule.by_class || box.label == best.label) && counted_overlap(best, box) > rule.iou_max;
    });
  }
  return kept;
}

std::vector<Box> suppressed(const std::vector<Box>& boxes, const NmsRule& rule, size_t count_max = 300) {
  Nms nms;
  std::vector<Box> kept(std::min(boxes.size(), count_max));
  kept.resize(nms.run(boxes, rule, kept));
  return kept;
}

std::vector<Box> given_boxes(const Result& result) {
  REQUIRE_MESSAGE(result.ok(), result.error);
  const std::span<const Box> boxes = result.records<Box>("boxes");
  return {boxes.begin(), boxes.end()};
}

} // namespace

TEST_CASE("suppression keeps the boxes that brute force keeps, for sets with equal scores and bad boxes") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  const auto below = [&](uint32_t count) { return static_cast<int>(random() % count); };
  int64_t dropped = 0;
  for (int64_t round = 0; round < test::part_of(400); ++round) {
    std::vector<Box> boxes(static_cast<size_t>(below(40)));
    for (size_t i = 0; i < boxes.size(); ++i) {
      boxes[i] = {float(below(20)),    float(below(20)), float(below(16)),       float(below(16)),
                  float(below(9)) / 8, below(3),         static_cast<int64_t>(i)};
      if (below(20) == 0) boxes[i].x = kNotANumber;
      if (below(20) == 0) boxes[i].score = kNotANumber;
    }
    const NmsRule rule = {below(5) / 4.0, float(below(5)) / 8, below(2) == 0};
    const size_t count_max = below(3) == 0 ? 3 : 300;
    const std::vector<Box> wanted = brute_force(boxes, rule, count_max);
    INFO("round ", round);
    REQUIRE(same_boxes(suppressed(boxes, rule, count_max), wanted));
    dropped += static_cast<int64_t>(boxes.size() - wanted.size());
  }
  CHECK(dropped > 0);
}

TEST_CASE("the earlier of two equal boxes stays, and one that overlaps by just the limit stays too") {
  const Box first = {0, 0, 3, 2, 0.5f, 0, 1}, second = {0, 0, 3, 2, 0.5f, 0, 2}, beside = {1, 0, 3, 2, 0.5f, 0, 3};
  CHECK(overlap(first, beside) == 0.5);
  CHECK(same_boxes(suppressed({first, second}, {0.5, 0, true}), std::vector{first}));
  CHECK(same_boxes(suppressed({second, first}, {0.5, 0, true}), std::vector{second}));
  CHECK(same_boxes(suppressed({first, beside}, {0.5, 0, true}), std::vector{first, beside}));
  CHECK(same_boxes(suppressed({first, beside}, {0.49, 0, true}), std::vector{first}));
  CHECK(same_boxes(suppressed({first, second, beside}, {1, 0, true}), std::vector{first, second, beside}));
}

TEST_CASE("a box drops boxes of other classes only if that is asked for") {
  const Box person = {0, 0, 9, 9, 0.5f, 0, 1}, bag = {0, 0, 9, 8, 0.75f, 7, 2};
  CHECK(same_boxes(suppressed({person, bag}, {0.45, 0, true}), std::vector{bag, person}));
  CHECK(same_boxes(suppressed({person, bag}, {0.45, 0, false}), std::vector{bag}));
}

TEST_CASE("boxes that are none, and boxes below the least score, drop nothing and are not kept") {
  const Box good = {1, 1, 4, 4, 0.7f};
  std::vector<Box> boxes = {good};
  for (float Box::*number : {&Box::x, &Box::y, &Box::width, &Box::height, &Box::score})
    for (const float bad : {kNotANumber, kInfinite, -kInfinite}) {
      boxes.push_back({1, 1, 4, 4, 0.9f});
      boxes.back().*number = bad;
    }
  boxes.push_back({1, 1, 0, 4, 0.9f});
  boxes.push_back({1, 1, 4, -4, 0.9f});
  boxes.push_back({1, 1, 4, 4, std::nextafter(0.7f, 0.0f)});
  CHECK(same_boxes(suppressed(boxes, {0.45, 0.7f, true}), std::vector{good}));
}

TEST_CASE("detect.nms gives the best boxes, at most count_max of them, with the time of the boxes") {
  const std::vector<Box> boxes = {{0, 0, 9, 9, 0.5f}, {30, 0, 9, 9, 0.75f}, {0, 0, 9, 8, 0.625f}, {60, 0, 9, 9, 0.7f}};
  TableTest nms(builtin("detect.nms"), {{"score_min", "0.7"}, {"count_max", "3"}});
  nms.input("boxes", testing::records<Box>(boxes).at(77, 5));
  const Result result = nms.tick();
  CHECK(same_boxes(given_boxes(result), std::vector{boxes[1], boxes[3]}));
  CHECK(result.value("boxes").header().pts_ns == 77);
  CHECK(nms.format("boxes").record_count_max == 3);
  nms.set("score_min", "0.25");
  CHECK(same_boxes(given_boxes(nms.tick()), std::vector{boxes[1], boxes[3], boxes[2]}));
  nms.input("boxes", testing::records<Box>({}));
  CHECK(given_boxes(nms.tick()).empty());
}
