// test.number, test.mix, test.sum and test.record: functions of index and inputs, and nothing else.
#include "handlers/test/mixing.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "builtin.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

Value numbers(std::vector<int64_t> elements) {
  return testing::tensor<int64_t>({static_cast<int64_t>(elements.size())}, elements);
}
int64_t first_of(const Result& result) { return result.tensor("out").elements<int64_t>()[0]; }

// The value that test.mix makes of one tick with these inputs.
int64_t mixed(const std::vector<Value>& inputs) {
  TableTest mix(builtin("test.mix"));
  for (uint32_t i = 0; i < inputs.size(); ++i) mix.input("in", inputs[i], i);
  return first_of(mix.tick());
}

} // namespace

TEST_CASE("test.number repeats itself for one seed and not for another") {
  const auto run = [](const char* seed) {
    TableTest number(builtin("test.number"), {{"seed", seed}, {"size", "3"}, {"silent_every", "4"}});
    std::vector<int64_t> seen;
    for (int i = 0; i < 50; ++i) {
      const Result result = number.tick();
      const bool there = result.has("out");
      seen.push_back(there);
      if (!there) continue;
      const auto elements = result.tensor("out").elements<int64_t>();
      REQUIRE(elements.size() == 3);
      seen.insert(seen.end(), elements.begin(), elements.end());
    }
    return seen;
  };
  CHECK(run("1") == run("1"));
  CHECK(run("1") != run("2"));
}

TEST_CASE("test.number is silent about as often as it says, ends after count, and fails where it is told to") {
  TableTest number(builtin("test.number"), {{"silent_every", "5"}, {"count", "1000"}, {"fail_at", "17"}});
  int silent = 0;
  for (int i = 0; i < 1000; ++i) {
    const Result result = number.tick();
    CHECK(result.ok() == (i != 17));
    if (i == 17) CHECK(result.error == "test.number fails here, as fail_at asks");
    silent += result.ok() && !result.has("out");
  }
  CHECK(silent > 150);
  CHECK(silent < 250);
  CHECK(number.tick().end());
}

TEST_CASE("test.mix tells apart which inputs came, where, in what order, and with what in them") {
  const Value a = numbers({1}), b = numbers({2}), none;
  std::set<int64_t> results;
  const std::vector<std::vector<Value>> cases = {
      {a},       {b},    {a, none},         {none, a},         {a, b},       {b, a}, {a, a},
      {a, b, a}, {none}, {numbers({1, 2})}, {numbers({2, 1})}, {numbers({})}};
  for (const std::vector<Value>& inputs : cases) {
    results.insert(mixed(inputs));
    CHECK(mixed(inputs) == mixed(inputs));
  }
  CHECK(results.size() == cases.size());
}

TEST_CASE("test.mix depends on the tick, fills all its elements, and falls silent and fails by chance of the index") {
  TableTest mix(builtin("test.mix"), {{"size", "100"}, {"silent_every", "10"}, {"fail_every", "10"}});
  mix.input("in", numbers({5}));
  std::set<int64_t> seen;
  int silent = 0, failed = 0;
  for (int i = 0; i < 1000; ++i) {
    const Result result = mix.tick();
    failed += !result.ok();
    silent += result.ok() && !result.has("out");
    if (!result.has("out")) continue;
    const auto elements = result.tensor("out").elements<int64_t>();
    REQUIRE(elements.size() == 100);
    seen.insert(elements.begin(), elements.end());
  }
  CHECK(seen.size() == static_cast<size_t>(1000 - silent - failed) * 100);
  CHECK(silent > 60);
  CHECK(silent < 140);
  CHECK(failed > 60);
  CHECK(failed < 140);
}

TEST_CASE("test.mix without any input still fires") {
  TableTest mix(builtin("test.mix"));
  CHECK(mix.tick().has("out"));
}

TEST_CASE("test.sum adds element by element, wraps around, and keeps the shape") {
  TableTest sum(builtin("test.sum"));
  sum.input("in", testing::tensor<int64_t>({2, 2}, {1, 2, 3, INT64_MAX}), 0);
  sum.input("in", testing::tensor<int64_t>({2, 2}, {10, 20, 30, 1}), 1);
  sum.input("in", testing::tensor<int64_t>({2, 2}, {100, 200, 300, 0}), 2);
  const Result result = sum.tick();
  REQUIRE(result.ok());
  const auto elements = result.tensor("out").elements<int64_t>();
  CHECK(std::vector<int64_t>(elements.begin(), elements.end()) == std::vector<int64_t>{111, 222, 333, INT64_MIN});
  CHECK(result.tensor("out").shape().size() == 2);
  CHECK(sum.format("out").shape[1] == 2);
}

TEST_CASE("test.sum refuses inputs of different sizes, and none at all") {
  TableTest different(builtin("test.sum"));
  different.input("in", numbers({1, 2}), 0);
  different.input("in", numbers({1}), 1);
  CHECK(different.start() == MR_ERROR);
  CHECK(different.error() == "the inputs of test.sum differ in size");
}

TEST_CASE("test.record writes a line a tick that tells which inputs came and what was in them") {
  const std::string path = std::string(MILLRACE_BINARY_DIR) + "/mixing.scratch";
  const auto record = [&path](const Value& second) {
    TableTest recorder(builtin("test.record"), {{"path", path}});
    recorder.input("in", numbers({1}), 0);
    recorder.input("in", numbers({2}), 1);
    recorder.tick();
    recorder.input("in", second, 1);
    recorder.tick();
    REQUIRE(recorder.drain() == MR_OK);
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::remove(path.c_str());
    return text;
  };
  const std::string text = record({});
  CHECK(text.substr(0, 5) == "0 11 ");
  CHECK(text.substr(text.find('\n') + 1, 5) == "1 10 ");
  CHECK(text.size() == 2 * (5 + 16 + 1));
  CHECK(record({}) == text);
  CHECK(record(numbers({2})) != record(numbers({3})));
}
