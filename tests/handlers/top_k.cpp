// tensor.top_k: the best classes, against sorting all of them.
#include <doctest/doctest.h>
#include <millrace/payload/half_floats.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "builtin.h"
#include "handlers/tensor/class_score.h"
#include "scratch.h"
#include "tests/part.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::Setting;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

std::vector<Class> sorted_classes(const std::vector<float>& scores) {
  std::vector<Class> classes;
  for (size_t i = 0; i < scores.size(); ++i)
    if (std::isfinite(scores[i])) classes.push_back({scores[i], static_cast<int32_t>(i)});
  std::stable_sort(classes.begin(), classes.end(), [](const Class& a, const Class& b) { return a.score > b.score; });
  return classes;
}

bool same_classes(std::span<const Class> a, std::span<const Class> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Class& x, const Class& y) { return x.score == y.score && x.label == y.label; });
}

Value score_tensor(const std::vector<float>& scores, bool half, bool has_one) {
  const auto count = static_cast<int64_t>(scores.size());
  if (!half) return has_one ? testing::tensor<float>({1, count}, scores) : testing::tensor<float>({count}, scores);
  std::vector<Float16> halves;
  for (const float score : scores) halves.push_back(Float16(score));
  return has_one ? testing::tensor<Float16>({1, count}, halves) : testing::tensor<Float16>({count}, halves);
}

std::vector<Class> top_classes(const Value& tensor, std::initializer_list<Setting> settings) {
  TableTest top(builtin("tensor.top_k"), settings);
  top.input("tensor", tensor);
  const Result result = top.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  const std::span<const Class> classes = result.records<Class>("records");
  return {classes.begin(), classes.end()};
}

} // namespace

TEST_CASE("the best classes are the first of all when sorted, for every layout and with equal scores") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  for (int64_t round = 0; round < test::part_of(200); ++round) {
    std::vector<float> scores(1 + random() % 50);
    for (float& score : scores) score = static_cast<float>(random() % 17) / 16;
    if (round % 3 == 0) scores[random() % scores.size()] = std::numeric_limits<float>::quiet_NaN();
    if (round % 3 == 1) scores[random() % scores.size()] = std::numeric_limits<float>::infinity();
    const size_t k = 1 + random() % 12;
    std::vector<Class> wanted = sorted_classes(scores);
    wanted.resize(std::min(k, wanted.size()));
    INFO("round ", round);
    REQUIRE(same_classes(top_classes(score_tensor(scores, round % 2 == 0, round % 5 < 2), {{"k", std::to_string(k)}}),
                         wanted));
  }
}

TEST_CASE("classes below the least score are left out, and so is what k has no room for") {
  const Value tensor = score_tensor({0.25f, 0.5f, -1, 0.5f, 0.75f}, false, false);
  CHECK(same_classes(top_classes(tensor, {}), std::vector<Class>{{0.75f, 4}, {0.5f, 1}, {0.5f, 3}, {0.25f, 0}}));
  CHECK(
      same_classes(top_classes(tensor, {{"score_min", "0.5"}}), std::vector<Class>{{0.75f, 4}, {0.5f, 1}, {0.5f, 3}}));
  CHECK(same_classes(top_classes(tensor, {{"k", "2"}}), std::vector<Class>{{0.75f, 4}, {0.5f, 1}}));
  CHECK(top_classes(tensor, {{"score_min", "-2"}}).back().label == 2);
  CHECK(top_classes(tensor, {{"score_min", "0.8"}}).empty());
}

TEST_CASE("softmax makes probabilities of logits, also of large ones") {
  const std::vector<float> logits = {1000, 1001, -std::numeric_limits<float>::infinity(), 998, 1001};
  const std::vector<Class> classes = top_classes(score_tensor(logits, false, true), {{"softmax", "true"}, {"k", "10"}});
  REQUIRE(classes.size() == 4);
  double sum = 0;
  for (const Class& one : classes) sum += std::exp(double{logits[size_t(one.label)]} - 1001);
  for (const Class& one : classes)
    CHECK(one.score == doctest::Approx(std::exp(double{logits[size_t(one.label)]} - 1001) / sum).epsilon(1e-6));
  CHECK(classes[0].label == 1);
  CHECK(classes[1].label == 4);
  CHECK(top_classes(score_tensor(logits, false, true), {{"softmax", "true"}, {"score_min", "0.3"}}).size() == 2);
}

TEST_CASE("scores with a stride are read where they lie") {
  const Value column = testing::tensor<float>({1, 3}, {0.25f, 0.75f, 0.5f});
  column.raw().as.tensor.shape[1] = 2;
  column.raw().as.tensor.strides[1] = 2;
  CHECK(same_classes(top_classes(column, {}), std::vector<Class>{{0.5f, 1}, {0.25f, 0}}));
}

TEST_CASE("tensor.top_k takes the scores of one item, keeps their time, and gives no class for none") {
  TableTest batch(builtin("tensor.top_k"));
  batch.input("tensor", testing::tensor<float>({2, 10}));
  CHECK(batch.start() == MR_ERROR);
  CHECK(batch.error() == "the tensor is [2, 10], and the scores of one item are [classes] or [1, classes]");
  TableTest top(builtin("tensor.top_k"));
  top.input("tensor", score_tensor({0, 1, 0.5f}, false, true).at(33, 4));
  const Result result = top.tick();
  REQUIRE(result.ok());
  CHECK(result.value("records").header().pts_ns == 33);
  CHECK(top.format("records").record_count_max == 3);
  top.input("tensor", testing::tensor<float>({0, 3}));
  const Result none = top.tick();
  REQUIRE_MESSAGE(none.ok(), none.error);
  CHECK(none.records<Class>("records").empty());
}

TEST_CASE("items of a call get classes each for itself") {
  TableTest top(builtin("tensor.top_k"), {{"k", "1"}});
  for (const size_t best : {2u, 0u, 1u}) {
    std::vector<float> scores(3);
    scores[best] = 1;
    top.input("tensor", score_tensor(scores, false, true));
    top.put();
  }
  std::vector<int32_t> labels;
  for (const Result& result : top.fire_items()) labels.push_back(result.records<Class>("records")[0].label);
  CHECK(labels == std::vector<int32_t>{2, 0, 1});
}

TEST_CASE("classes are written as JSON and read again") {
  const ScratchFolder folder;
  const std::string path = folder / "classes.jsonl";
  TableTest writer(builtin("record.to_json"), {{"path", path}});
  writer.input("in", testing::records<Class>({{0.75f, 4}, {0.5f, 1}}));
  REQUIRE(writer.tick().ok());
  REQUIRE(writer.drain() == MR_OK);
  CHECK(folder.text("classes.jsonl").find(R"("millrace.Class","records":[{"score":0.75,"label":4,"name":""},)") !=
        std::string::npos);
  TableTest reader(builtin("record.from_json"), {{"path", path}});
  const Result result = reader.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  CHECK(same_classes(result.records<Class>("out"), std::vector<Class>{{0.75f, 4}, {0.5f, 1}}));
}
