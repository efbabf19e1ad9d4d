// detect.mask_boxes and its connected areas, against a flood that fills pixel by pixel.
#include <doctest/doctest.h>
#include <millrace/payload/half_floats.h>
#include <millrace/payload/patch_transform.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "builtin.h"
#include "handlers/detect/connected.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::Setting;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

struct ScoreMap {
  uint32_t width, height;
  std::vector<float> scores;
  float& at(uint32_t x, uint32_t y) { return scores[size_t{y} * width + x]; }
};

ScoreMap empty_map(uint32_t width, uint32_t height) {
  return {width, height, std::vector<float>(size_t{width} * height, 0)};
}

void fill(ScoreMap& map, uint32_t left, uint32_t top, uint32_t right, uint32_t bottom, float score) {
  for (uint32_t y = top; y < bottom; ++y)
    for (uint32_t x = left; x < right; ++x) map.at(x, y) = score;
}

// The area that holds this pixel; its pixels lose their scores.
ScoredArea flooded(ScoreMap& map, uint32_t x, uint32_t y, float score_min) {
  ScoredArea area{x, y, x + 1, y + 1, 0, 0};
  std::vector<std::pair<uint32_t, uint32_t>> open = {{x, y}};
  area.sum += map.at(x, y);
  map.at(x, y) = -1;
  while (!open.empty()) {
    const auto [px, py] = open.back();
    open.pop_back();
    ++area.count;
    area = {std::min(area.left, px),
            std::min(area.top, py),
            std::max(area.right, px + 1),
            std::max(area.bottom, py + 1),
            area.count,
            area.sum};
    for (uint32_t ny = py == 0 ? 0 : py - 1; ny <= std::min(py + 1, map.height - 1); ++ny)
      for (uint32_t nx = px == 0 ? 0 : px - 1; nx <= std::min(px + 1, map.width - 1); ++nx) {
        if (!(map.at(nx, ny) >= score_min)) continue;
        area.sum += map.at(nx, ny);
        map.at(nx, ny) = -1;
        open.emplace_back(nx, ny);
      }
  }
  return area;
}

std::vector<ScoredArea> flooded_areas(ScoreMap map, float score_min) {
  std::vector<ScoredArea> areas;
  for (uint32_t y = 0; y < map.height; ++y)
    for (uint32_t x = 0; x < map.width; ++x)
      if (map.at(x, y) >= score_min) areas.push_back(flooded(map, x, y, score_min));
  return areas;
}

std::vector<Box> boxes_in(const ScoreMap& map, std::initializer_list<Setting> settings,
                          const PatchTransform* transform = nullptr) {
  TableTest handler(builtin("detect.mask_boxes"), settings);
  handler.input("tensor", testing::tensor<float>({1, 1, map.height, map.width}, map.scores));
  if (transform) handler.input("transform", testing::records<PatchTransform>({*transform}));
  const Result result = handler.tick();
  INFO(result.error);
  REQUIRE(result.ok());
  const auto boxes = result.records<Box>("boxes");
  return {boxes.begin(), boxes.end()};
}

} // namespace

TEST_CASE("connected areas are what a flood finds, in the order of their first pixels, on random maps") {
  std::mt19937 random(11);
  ConnectedAreas areas; // one for all maps, as in a handler
  for (int64_t i = test::part_of(3000); i > 0; --i) {
    ScoreMap map = empty_map(1 + static_cast<uint32_t>(random() % 24), 1 + static_cast<uint32_t>(random() % 24));
    const uint32_t full = static_cast<uint32_t>(random() % 101); // percent of the pixels
    for (float& score : map.scores) {
      score = random() % 100 < full ? 0.5f + static_cast<float>(random() % 128) / 256 : 0.25f;
      if (random() % 50 == 0) score = std::numeric_limits<float>::quiet_NaN();
    }
    const std::vector<ScoredArea> wanted = flooded_areas(map, 0.5f);
    areas.clear();
    for (uint32_t y = 0; y < map.height; ++y) areas.add_row(&map.at(0, y), map.width, 0.5f);
    const std::vector<ScoredArea>& found = areas.finish();
    CAPTURE(map.width);
    CAPTURE(map.height);
    CAPTURE(full);
    REQUIRE(found.size() == wanted.size());
    REQUIRE(found.size() <= ConnectedAreas::count_max(map.width, map.height));
    for (size_t a = 0; a < found.size(); ++a) {
      REQUIRE(found[a].left == wanted[a].left);
      REQUIRE(found[a].top == wanted[a].top);
      REQUIRE(found[a].right == wanted[a].right);
      REQUIRE(found[a].bottom == wanted[a].bottom);
      REQUIRE(found[a].count == wanted[a].count);
      REQUIRE(found[a].sum == wanted[a].sum); // sums of few small fractions are exact in any order
    }
  }
}

TEST_CASE("detect.mask_boxes gives a box for each area, best first, with the mean of its scores") {
  ScoreMap map = empty_map(40, 20);
  fill(map, 2, 3, 12, 8, 0.75f);
  fill(map, 20, 10, 30, 18, 1.0f);
  fill(map, 20, 10, 25, 18, 0.5f); // half of it less sure
  fill(map, 33, 2, 38, 6, 0.5f);   // a mean below 0.6
  fill(map, 14, 1, 16, 19, 1.0f);  // two pixels wide
  fill(map, 0, 18, 10, 20, 0.25f); // below score_min
  const std::vector<Box> boxes = boxes_in(map, {{"grow", "0"}});
  REQUIRE(boxes.size() == 2);
  CHECK(boxes[0].score == 0.75f);
  CHECK(boxes[0].x == 2);
  CHECK(boxes[0].y == 3);
  CHECK(boxes[0].width == 10);
  CHECK(boxes[0].height == 5);
  CHECK(boxes[0].label == 0);
  CHECK(boxes[1].score == 0.75f); // equal, and begins lower
  CHECK(boxes[1].y == 10);
  CHECK(boxes_in(map, {{"grow", "0"}, {"size_min", "2"}}).at(0).score == 1.0f);
  CHECK(boxes_in(map, {{"grow", "0"}, {"mean_min", "0.5"}}).size() == 3);
  CHECK(boxes_in(map, {{"grow", "0"}, {"count_max", "1"}}).size() == 1);
  CHECK(boxes_in(map, {{"score_min", "0.9"}, {"size_min", "5"}}).size() == 1);
}

TEST_CASE("the sides of a box move out by area through perimeter, and not beyond the map") {
  ScoreMap map = empty_map(100, 60);
  fill(map, 20, 20, 60, 30, 1.0f); // 400 through 100, times 1.5
  fill(map, 0, 50, 40, 60, 1.0f);
  const std::vector<Box> boxes = boxes_in(map, {});
  REQUIRE(boxes.size() == 2);
  CHECK(boxes[0].x == 14);
  CHECK(boxes[0].y == 14);
  CHECK(boxes[0].width == 52);
  CHECK(boxes[0].height == 22);
  CHECK(boxes[1].x == 0);
  CHECK(boxes[1].y == 44);
  CHECK(boxes[1].width == 46);
  CHECK(boxes[1].height == 16);
}

TEST_CASE("boxes of a smaller map of a letterboxed picture are in pixels of the picture") {
  ScoreMap map = empty_map(80, 80); // the network saw 320 × 320, and in it a picture of 640 × 320 below 80 rows
  fill(map, 10, 30, 30, 40, 1.0f);
  const PatchTransform transform{0.5f, 0.5f, 0, 80, 640, 320};
  const std::vector<Box> boxes = boxes_in(map, {{"grow", "0"}, {"stride", "4"}}, &transform);
  REQUIRE(boxes.size() == 1);
  CHECK(boxes[0].x == 80);
  CHECK(boxes[0].y == 80);
  CHECK(boxes[0].width == 160);
  CHECK(boxes[0].height == 80);

  TableTest handler(builtin("detect.mask_boxes"), {});
  handler.input("tensor", testing::tensor<float>({1, 1, map.height, map.width}, map.scores));
  handler.input("transform", Value());
  const Result result = handler.tick();
  REQUIRE(result.ok());
  CHECK(result.records<Box>("boxes").empty()); // nobody knows where
}

TEST_CASE("a map in half precision gives the boxes of the same numbers in single precision") {
  ScoreMap map = empty_map(17, 9);
  fill(map, 3, 2, 9, 7, 0.625f);
  std::vector<Float16> halves;
  for (const float score : map.scores) halves.push_back(Float16(score));
  const Value tensor = testing::tensor<Float16>({9, 17}, halves);
  TableTest handler(builtin("detect.mask_boxes"), {{"grow", "0"}});
  handler.input("tensor", tensor);
  const Result result = handler.tick();
  INFO(result.error);
  REQUIRE(result.ok());
  const auto boxes = result.records<Box>("boxes");
  REQUIRE(boxes.size() == 1);
  CHECK(boxes[0].score == 0.625f);
  CHECK(boxes[0].x == 3);
  CHECK(boxes[0].height == 5);
}

TEST_CASE("a tensor that is no map of scores is refused with its shape") {
  const auto refusal = [](std::initializer_list<int64_t> shape) {
    TableTest handler(builtin("detect.mask_boxes"), {});
    handler.input("tensor", testing::tensor<float>(shape));
    REQUIRE(handler.start() == MR_ERROR);
    return handler.error();
  };
  const std::string expected = "a map of scores is [height, width], or that with ones before it, and the tensor is ";
  CHECK(refusal({1, 2, 4, 4}) == expected + "[1, 2, 4, 4]");
  CHECK(refusal({2, 1, 4, 4}) == expected + "[2, 1, 4, 4]");
  CHECK(refusal({3, 4, 4}) == expected + "[3, 4, 4]");
}

TEST_CASE("items of a call get boxes each for itself") {
  TableTest handler(builtin("detect.mask_boxes"), {{"grow", "0"}});
  for (const uint32_t left : {2u, 9u, 5u}) {
    ScoreMap map = empty_map(17, 9);
    fill(map, left, 1, left + 4, 8, 1);
    if (left == 9) fill(map, 0, 0, 4, 4, 0.75f);
    handler.input("tensor", testing::tensor<float>({9, 17}, map.scores).at(left, 1));
    handler.put();
  }
  const std::vector<Result> results = handler.fire_items();
  REQUIRE(results.size() == 3);
  std::vector<size_t> counts;
  std::vector<float> lefts;
  std::vector<int64_t> times;
  for (const Result& result : results) {
    const auto boxes = result.records<Box>("boxes");
    counts.push_back(boxes.size());
    lefts.push_back(boxes[0].x);
    times.push_back(result.value("boxes").header().pts_ns);
  }
  CHECK(counts == std::vector<size_t>{1, 2, 1});
  CHECK(lefts == std::vector<float>{2, 9, 5});
  CHECK(times == std::vector<int64_t>{2, 9, 5});
}
