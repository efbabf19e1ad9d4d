// detect.nms and detect.decode: suppression against brute force, heads against tensors made by hand.
#include <doctest/doctest.h>
#include <millrace/payload/half_floats.h>
#include <millrace/payload/patch_transform.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "builtin.h"
#include "handlers/detect/head.h"
#include "handlers/detect/nms.h"
#include "tests/part.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::Setting;
using millrace::testing::TableTest;
using millrace::testing::Value;

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

// ---- heads
// -----------------------------------------------------------------------------------------------------------

namespace {

using Rows = std::vector<std::vector<float>>; // one a box

// How the same rows can lie in a tensor.
struct Layout {
  bool numbers_first = true, has_one = true, half = false;
};

Value head_tensor(const Rows& rows, const Layout& layout) {
  const auto boxes = static_cast<int64_t>(rows.size()), numbers = static_cast<int64_t>(rows.front().size());
  const int64_t outer = layout.numbers_first ? numbers : boxes, inner = layout.numbers_first ? boxes : numbers;
  std::vector<float> elements;
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < inner; ++j)
      elements.push_back(layout.numbers_first ? rows[size_t(j)][size_t(i)] : rows[size_t(i)][size_t(j)]);
  const auto shaped = [&]<class T>(const std::vector<T>& numbers_of_tensor) {
    return layout.has_one ? testing::tensor<T>({1, outer, inner}, numbers_of_tensor)
                          : testing::tensor<T>({outer, inner}, numbers_of_tensor);
  };
  if (!layout.half) return shaped(elements);
  std::vector<Float16> halves;
  for (const float element : elements) halves.push_back(Float16(element));
  return shaped(halves);
}

std::vector<Box> decoded(const Value& tensor, std::initializer_list<Setting> settings, const Value& transform = {}) {
  TableTest decode(builtin("detect.decode"), settings);
  decode.input("tensor", tensor);
  if (transform) decode.input("transform", transform);
  return given_boxes(decode.tick());
}

// The settings that every combination of layouts is tried with.
void check_all_layouts(const Rows& rows, const char* head, const std::vector<Box>& wanted) {
  for (const bool numbers_first : {true, false})
    for (const bool has_one : {true, false})
      for (const bool half : {true, false}) {
        const Value tensor = head_tensor(rows, {numbers_first, has_one, half});
        INFO(head, numbers_first ? " first" : " last", has_one ? ", with a 1" : "", half ? ", half" : "");
        CHECK(same_boxes(decoded(tensor, {{"head", head}, {"rows", numbers_first ? "first" : "last"}}), wanted));
        CHECK(same_boxes(decoded(tensor, {{"head", head}}), wanted));
      }
}

std::string decode_refusal(const Value& tensor, std::initializer_list<Setting> settings) {
  TableTest decode(builtin("detect.decode"), settings);
  decode.input("tensor", tensor);
  REQUIRE(decode.start() == MR_ERROR);
  return decode.error();
}

const std::string kAnchorFreeHeads =
    " head=anchor_free expects [1, 4 + classes, boxes] or [1, boxes, 4 + classes], with or without the 1: ";

} // namespace

TEST_CASE("a head without anchors gives the best class of each row, in every layout") {
  Rows rows(9, std::vector<float>(7)); // boxes without area
  rows[1] = {50, 40, 20, 10, 0.25f, 0.5f, 0.125f};
  rows[4] = {10, 20, 4, 6, 0.75f, 0.75f, 0.5f};
  rows[5] = {90, 90, 8, 8, 0.125f, 0.125f, 0.125f}; // below score_min
  rows[8] = {50, 41, 20, 10, 0, 0.625f, 0};         // overlaps the first
  check_all_layouts(rows, "anchor_free", {{8, 17, 4, 6, 0.75f, 0}, {40, 36, 20, 10, 0.625f, 1}});
}

TEST_CASE("a head with anchors multiplies the score of the box and of its best class, in every layout") {
  Rows rows(9, std::vector<float>(7));
  rows[0] = {50, 40, 20, 10, 0.5f, 0.25f, 0.75f};
  rows[3] = {10, 20, 4, 6, 1, 0.875f, 0.5f};
  rows[7] = {90, 90, 8, 8, 0.125f, 1, 1};
  check_all_layouts(rows, "anchors", {{8, 17, 4, 6, 0.875f, 0}, {40, 35, 20, 10, 0.375f, 1}});
}

TEST_CASE("a head that ends with corners, score and class gives them, in every layout") {
  Rows rows(9, std::vector<float>(6));
  rows[0] = {40, 35, 60, 45, 0.5f, 3};
  rows[2] = {8, 17, 12, 23, 0.75f, 0};
  rows[3] = {8, 17, 12, 23, 0.75f, -1};
  rows[4] = {60, 45, 40, 35, 0.75f, 3}; // its corners are exchanged
  check_all_layouts(rows, "end_to_end", {{8, 17, 4, 6, 0.75f, 0}, {40, 35, 20, 10, 0.5f, 3}});
}

TEST_CASE("the rows of many blocks are decoded as one by one, and suppressed as detect.nms does") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  const auto number = [&](uint32_t count) { return static_cast<float>(random() % count); };
  for (const size_t count : {64u, 65u, 200u}) {
    Rows rows;
    std::vector<Box> wanted;
    for (size_t i = 0; i < count; ++i) {
      std::vector<float> row = {number(64), number(64), 1 + number(16), 1 + number(16)};
      for (int label = 0; label < 20; ++label) row.push_back(number(33) / 32 * (label % 5 == 0 ? 1.0f : 0.25f));
      const auto best = std::max_element(row.begin() + 4, row.end());
      wanted.push_back({row[0] - row[2] / 2, row[1] - row[3] / 2, row[2], row[3], *best,
                        static_cast<int32_t>(best - row.begin() - 4)});
      rows.push_back(row);
    }
    const Value tensor = head_tensor(rows, {});
    struct Case {
      NmsRule rule;
      const char *iou_max, *score_min, *by_class;
    };
    for (const Case& one :
         {Case{{1, 0.25f, true}, "1", "0.25", "true"}, Case{{0.45, 0.25f, true}, "0.45", "0.25", "true"},
          Case{{0.2, 0.5f, false}, "0.2", "0.5", "false"}}) {
      INFO(count, " boxes, iou_max ", std::string(one.iou_max));
      const std::vector<Box> boxes = decoded(
          tensor,
          {{"rows", "first"}, {"iou_max", one.iou_max}, {"score_min", one.score_min}, {"by_class", one.by_class}});
      CHECK(same_boxes(boxes, suppressed(wanted, one.rule)));
      CHECK(!boxes.empty());
    }
  }
}

TEST_CASE("boxes come back from a letterboxed patch to the picture and end at its edges") {
  Rows rows(6, std::vector<float>(5));
  rows[0] = {320, 320, 100, 50, 0.75f};
  rows[1] = {100, 60, 40, 40, 0.875f}; // in the border
  rows[2] = {200, 140, 40, 40, 0.5f};  // half of it in the border
  PatchTransform transform{0.5f, 0.5f, 0, 140, 1280, 720};
  const Value tensor = head_tensor(rows, {});
  CHECK(same_boxes(decoded(tensor, {}, testing::records<PatchTransform>({transform})),
                   std::vector<Box>{{540, 310, 200, 100, 0.75f, 0}, {360, 0, 80, 40, 0.5f, 0}}));
  transform.width = transform.height = 0; // of a picture whose size is not known
  CHECK(decoded(tensor, {}, testing::records<PatchTransform>({transform})).size() == 3);
  CHECK(same_boxes(decoded(tensor, {{"score_min", "0.6"}}),
                   std::vector<Box>{{80, 40, 40, 40, 0.875f, 0}, {270, 295, 100, 50, 0.75f, 0}}));
}

TEST_CASE("boxes come back within a hundredth of a pixel from patches of pictures of any size") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  for (const auto& [width, height] : {std::pair{1u, 1u}, {1u, 719u}, {333u, 1u}, {641u, 479u}, {3841u, 2159u}}) {
    const float scale = std::min(640.0f / float(width), 640.0f / float(height));
    const PatchTransform transform{scale, scale, (640 - float(width) * scale) / 2, (640 - float(height) * scale) / 2,
                                   width, height};
    const auto part = [&](uint32_t extent) { return float(extent) * float(1 + random() % 1000) / 1001; };
    Rows rows;
    std::vector<Box> wanted;
    for (int i = 0; i < 20; ++i) {
      Box box = {part(width), part(height), 0, 0, 1 - float(i) / 64, 0};
      box.width = (float(width) - box.x) / 2;
      box.height = (float(height) - box.y) / 2;
      const Box patch = transform.to_patch(box);
      rows.push_back({patch.x + patch.width / 2, patch.y + patch.height / 2, patch.width, patch.height, box.score});
      wanted.push_back(box);
    }
    const std::vector<Box> boxes =
        decoded(head_tensor(rows, {}), {{"iou_max", "1"}}, testing::records<PatchTransform>({transform}));
    INFO("a picture of ", width, "x", height);
    REQUIRE(boxes.size() == wanted.size());
    for (size_t i = 0; i < boxes.size(); ++i) {
      CHECK(std::abs(boxes[i].x - wanted[i].x) < 0.01f);
      CHECK(std::abs(boxes[i].y - wanted[i].y) < 0.01f);
      CHECK(std::abs(boxes[i].x + boxes[i].width - wanted[i].x - wanted[i].width) < 0.01f);
      CHECK(std::abs(boxes[i].y + boxes[i].height - wanted[i].y - wanted[i].height) < 0.01f);
    }
  }
}

TEST_CASE("boxes whose place in the picture is not known are not given") {
  const Rows rows(6, {320, 320, 100, 50, 0.75f});
  TableTest decode(builtin("detect.decode"));
  decode.input("tensor", head_tensor(rows, {}));
  decode.input("transform", testing::records<PatchTransform>({PatchTransform{}}));
  CHECK(given_boxes(decode.tick()).size() == 1);
  const Value none = testing::records<PatchTransform>({PatchTransform{}});
  none.raw().as.records.count = none.header().extent_bytes = 0; // one lies there and does not count
  decode.input("transform", none);
  CHECK(given_boxes(decode.tick()).empty());
  decode.input("transform", Value());
  CHECK(given_boxes(decode.tick()).empty());
  decode.input("transform", testing::records<PatchTransform>({PatchTransform{0, 0, 0, 0, 0, 0}}));
  CHECK(given_boxes(decode.tick()).empty());
}

TEST_CASE("numbers that are parts of the patch become pixels of its size, which must be given") {
  Rows rows(6, std::vector<float>(5));
  rows[3] = {0.5f, 0.5f, 0.125f, 0.5f, 0.75f};
  const Value tensor = head_tensor(rows, {});
  CHECK(same_boxes(decoded(tensor, {{"unit", "fraction"}, {"width", "640"}, {"height", "320"}}),
                   std::vector<Box>{{280, 80, 80, 160, 0.75f, 0}}));
  CHECK(decode_refusal(tensor, {{"unit", "fraction"}, {"width", "640"}}) ==
        "unit=fraction needs the width and height of the patch, such as width=640 height=640");
}

TEST_CASE("a row with NaN in it gives no box, whichever number it is") {
  for (const auto& [head, row] : {std::pair<const char*, std::vector<float>>{"anchor_free", {9, 9, 4, 4, 1, 0.5f}},
                                  {"anchors", {9, 9, 4, 4, 1, 1, 0.5f}},
                                  {"end_to_end", {9, 9, 14, 14, 1, 2}}}) {
    Rows rows(row.size(), row);
    for (size_t number = 0; number < row.size(); ++number) rows[number][number] = kNotANumber;
    Rows with_good = rows;
    with_good.push_back(row);
    INFO(head);
    const std::initializer_list<Setting> settings = {{"head", head}, {"rows", "last"}};
    for (const bool half : {true, false}) {
      CHECK(decoded(head_tensor(rows, {false, true, half}), settings).empty());
      CHECK(decoded(head_tensor(with_good, {false, true, half}), settings).size() == 1);
    }
  }
}

TEST_CASE("a shape that is no head is refused with what it is and what it should be") {
  CHECK(decode_refusal(testing::tensor<float>({1, 4, 80}), {}) ==
        "the tensor is [1, 4, 80], and" + kAnchorFreeHeads +
            "it would have 4 numbers a box; rows=last takes the other dimension for them");
  CHECK(decode_refusal(testing::tensor<float>({84, 84}), {}) ==
        "the tensor is [84, 84], and" + kAnchorFreeHeads +
            "both dimensions are equal, so rows=auto cannot tell which holds the numbers of a box; give rows=first or "
            "rows=last");
  CHECK(decode_refusal(testing::tensor<float>({2, 6, 80}), {}) ==
        "the tensor is [2, 6, 80], and" + kAnchorFreeHeads +
            "its first dimension is not 1, so it is of several pictures");
  CHECK(decode_refusal(testing::tensor<float>({1, 5, 80}), {{"head", "anchors"}, {"rows", "first"}})
            .ends_with("[1, boxes, 5 + classes], with or without the 1: it would have 5 numbers a box; rows=last takes "
                       "the other dimension for them"));
  CHECK(decode_refusal(testing::tensor<float>({1, 300, 7}), {{"head", "end_to_end"}})
            .ends_with("[1, boxes, 6], with or without the 1: it would have 7 numbers a box"));
  CHECK(decode_refusal(testing::tensor<float>({80}), {}) == "input 'tensor' does not take this format");
  CHECK_THROWS_WITH_AS(head_layout(HeadKind::anchors, HeadNumbers::smaller, std::vector<int64_t>{9}),
                       doctest::Contains("it has 1 dimensions"), std::invalid_argument);
}

TEST_CASE("a tick may have fewer boxes than planned, or none, and the numbers stay where they were") {
  TableTest decode(builtin("detect.decode"));
  decode.bounded();
  Rows rows(20, std::vector<float>(6));
  rows[0] = {9, 9, 4, 4, 0.5f, 0.75f};
  decode.input("tensor", head_tensor(rows, {}));
  CHECK(given_boxes(decode.tick()).size() == 1);
  CHECK(decode.format("boxes").record_count_max == 20);
  rows.resize(2);
  decode.input("tensor", head_tensor(rows, {}).at(12, 3));
  const Result few = decode.tick();
  CHECK(given_boxes(few).size() == 1);
  CHECK(few.value("boxes").header().pts_ns == 12);
  decode.input("tensor", testing::tensor<float>({0, 6, 20}));
  CHECK(given_boxes(decode.tick()).empty());
}

TEST_CASE("items of a call are decoded each for itself") {
  TableTest decode(builtin("detect.decode"), {{"rows", "first"}});
  Rows rows(3, std::vector<float>(5));
  for (const float x : {10.0f, 20.0f, 30.0f}) {
    rows[1] = {x, x, 4, 4, 1};
    decode.input("tensor", head_tensor(rows, {}));
    decode.put();
  }
  const std::vector<Result> results = decode.fire_items();
  REQUIRE(results.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const float x = 10 * float(i + 1) - 2;
    CHECK(same_boxes(given_boxes(results[i]), std::vector<Box>{{x, x, 4, 4, 1, 0}}));
  }
}
