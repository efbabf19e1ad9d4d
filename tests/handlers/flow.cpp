// flow.switch, flow.gate, flow.rate: which values go on, and that they are the values that came.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

#include "builtin.h"
#include "handlers/flow/beat.h"
#include "handlers/flow/truth.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

mr_input input_of(const Value& value) { return value ? mr_input{&value.raw(), value.data()} : mr_input{}; }

// Those of the first `count` ticks that flow.rate hands on; `rate` values a second come.
std::set<uint64_t> kept(TableTest& rate, int64_t period_ns, uint64_t count) {
  std::set<uint64_t> ticks;
  rate.period_ns(period_ns);
  rate.input("in", testing::tensor<uint8_t>({1}, {1}));
  for (uint64_t i = 0; i < count; ++i) {
    const Result result = rate.tick();
    REQUIRE(result.ok());
    if (result.has("out")) ticks.insert(i);
  }
  return ticks;
}

} // namespace

// ---- flow.switch
// -------------------------------------------------------------------------------------------------------

TEST_CASE(
    "flow.switch hands on the chosen input, changes between ticks, and chooses nobody by -1 or a number too high") {
  TableTest chooser(builtin("flow.switch"), {{"select", "1"}});
  chooser.input("in", testing::image(Pixel::rgb8, 5, 3, 10).at(7, 8), 0);
  chooser.input("in", testing::image(Pixel::rgb8, 5, 3, 20).at(9, 4).from_stream(3), 1);
  Result result = chooser.tick();
  REQUIRE(result.ok());
  CHECK(result.image("out").row(2)[14] == 20);
  CHECK(result.value("out").header().pts_ns == 9);
  CHECK(result.value("out").header().duration_ns == 4);
  CHECK(result.value("out").header().stream == 3);
  chooser.set("select", "0");
  CHECK(chooser.tick().image("out").row(0)[0] == 10);
  for (const char* nobody : {"-1", "2", "63"}) {
    chooser.set("select", nobody);
    result = chooser.tick();
    CHECK(result.ok());
    CHECK(!result.has("out"));
  }
}

TEST_CASE("flow.switch is silent where the chosen input is, and asks nothing of the others") {
  TableTest chooser(builtin("flow.switch"));
  chooser.input("in", testing::records<Box>({{1, 2, 3, 4}}), 0);
  chooser.input("in", testing::records<Box>({}), 1);
  REQUIRE(chooser.tick().records<Box>("out").size() == 1);
  chooser.input("in", Value(), 1);
  CHECK(chooser.tick().records<Box>("out")[0].height == 4);
  chooser.input("in", Value(), 0);
  const Result result = chooser.tick();
  CHECK(result.fired);
  CHECK(!result.has("out"));
}

TEST_CASE("flow.switch hands on tensors, packets and records as they are") {
  const uint8_t bytes[] = {3, 1, 4};
  for (const Value& value : {testing::tensor<int16_t>({2, 2}, {1, -2, 3, -4}), testing::packet(bytes, 12, true),
                             testing::records<Box>({{1, 2, 3, 4, 0.5f, 6, 7}})}) {
    TableTest chooser(builtin("flow.switch"));
    chooser.input("in", value);
    const Result result = chooser.tick();
    REQUIRE(result.ok());
    CHECK(result.value("out").block()->hash() == value.block()->hash());
    CHECK(result.value("out").data() != value.data());
  }
}

TEST_CASE("flow.switch refuses inputs of different formats, and a choice that is not there") {
  const Value small = testing::image(Pixel::rgb8, 4, 4);
  for (const Value& other : {testing::image(Pixel::bgr8, 4, 4), testing::image(Pixel::rgb8, 4, 5),
                             testing::tensor<uint8_t>({4}), testing::records<Box>({})}) {
    TableTest chooser(builtin("flow.switch"));
    chooser.input("in", small, 0);
    chooser.input("in", other, 1);
    CHECK(chooser.start() == MR_ERROR);
    CHECK(chooser.error().starts_with("the inputs 0 and 1 differ in type, format or size"));
  }
  TableTest tensors(builtin("flow.switch"));
  tensors.input("in", testing::tensor<float>({2, 3}), 0);
  tensors.input("in", testing::tensor<float>({3, 2}), 1);
  CHECK(tensors.start() == MR_ERROR);
  TableTest high(builtin("flow.switch"), {{"select", "1"}});
  high.input("in", small);
  CHECK(high.start() == MR_ERROR);
  CHECK(high.error() == "select is 1, and the last input is 0");
}

// ---- flow.gate
// ---------------------------------------------------------------------------------------------------------

TEST_CASE("flow.gate forwards the buffer itself while it is open, and nothing while it is not") {
  const Value value = testing::image(Pixel::nv12, 4, 4);
  TableTest gate(builtin("flow.gate"));
  gate.input("in", value);
  CHECK(gate.tick().value("out").data() == value.data());
  gate.set("open", "false");
  CHECK(!gate.tick().has("out"));
  gate.set("open", "true");
  CHECK(gate.tick().state("out") == MR_OUTPUT_FORWARDED);
}

TEST_CASE("flow.gate with a control passes where both it and the parameter say yes") {
  const Value yes = testing::tensor<int32_t>({1}, {5}), no = testing::tensor<int32_t>({1}, {0});
  for (const bool open : {true, false}) {
    TableTest gate(builtin("flow.gate"), {{"open", open ? "true" : "false"}});
    gate.input("in", testing::tensor<uint8_t>({1}));
    gate.input("control", yes);
    CHECK(gate.tick().has("out") == open);
    gate.input("control", no);
    CHECK(!gate.tick().has("out"));
    gate.input("control", Value());
    CHECK(!gate.tick().has("out"));
    gate.input("control", yes);
    CHECK(gate.tick().has("out") == open);
  }
}

TEST_CASE("records say yes by being some, tensors by their first number, everything else by being there") {
  CHECK(!says_yes(input_of(Value())));
  CHECK(says_yes(input_of(testing::records<Box>({{}}))));
  CHECK(!says_yes(input_of(testing::records<Box>({}))));
  CHECK(says_yes(input_of(testing::image(Pixel::gray8, 1, 1, 0))));
  CHECK(says_yes(input_of(testing::tensor<uint8_t>({2}, {1, 0}))));
  CHECK(!says_yes(input_of(testing::tensor<uint8_t>({2}, {0, 1}))));
  CHECK(!says_yes(input_of(testing::tensor<uint8_t>({0}))));
  CHECK(says_yes(input_of(testing::tensor<int64_t>({1}, {std::numeric_limits<int64_t>::min()}))));
  CHECK(!says_yes(input_of(testing::tensor<float>({1}, {-0.0f}))));
  CHECK(says_yes(input_of(testing::tensor<float>({1}, {std::numeric_limits<float>::denorm_min()}))));
  CHECK(says_yes(input_of(testing::tensor<double>({1}, {std::nan("")}))));
}

// ---- flow.rate
// ---------------------------------------------------------------------------------------------------------

TEST_CASE("flow.rate keeps the first of every k values that come, and ticks without one do not count") {
  TableTest rate(builtin("flow.rate"), {{"one_in", "3"}});
  CHECK(kept(rate, 40'000'000, 8) == std::set<uint64_t>{0, 3, 6});
  TableTest gaps(builtin("flow.rate"), {{"one_in", "2"}});
  std::string passed;
  for (int i = 0; i < 8; ++i) {
    gaps.input("in", i % 2 == 0 ? testing::tensor<uint8_t>({1}) : Value());
    passed += gaps.tick().has("out") ? '1' : '0';
  }
  CHECK(passed == "10001000");
}

TEST_CASE("flow.rate forwards the buffer itself") {
  const Value value = testing::image(Pixel::rgb8, 4, 4);
  TableTest rate(builtin("flow.rate"));
  rate.input("in", value);
  CHECK(rate.tick().value("out").data() == value.data());
}

TEST_CASE("sixty a second become exactly 30, 25, 24 or 1, in every second") {
  for (const int wanted : {30, 25, 24, 1}) {
    TableTest rate(builtin("flow.rate"), {{"per_second", std::to_string(wanted)}});
    const std::set<uint64_t> ticks = kept(rate, kSecondNs / 60, 600); // 16.666666 ms: 40 ns a second too fast
    INFO(wanted);
    CHECK(ticks.size() == static_cast<size_t>(wanted) * 10);
    for (uint64_t second = 0; second < 10; ++second)
      CHECK(std::distance(ticks.lower_bound(second * 60), ticks.lower_bound(second * 60 + 60)) == wanted);
  }
}

TEST_CASE("a rate that is no higher than the limit passes whole, also a broadcast one in cut nanoseconds") {
  TableTest slow(builtin("flow.rate"), {{"per_second", "25"}});
  CHECK(kept(slow, kSecondNs / 25, 100).size() == 100);
  const double broadcast = 30000.0 / 1001;
  for (int64_t n = 0; n < 1'000'000; n += 7) CHECK_MESSAGE(beat_of(n * 1001 * 100'000 / 3, broadcast) == n, n);
}

TEST_CASE("beats are the floor of time by rate, computed exactly, also after years") {
  for (const int64_t per_second : {1, 7, 25, 60, 1000}) {
    for (const int64_t second : {int64_t{0}, int64_t{59}, int64_t{86'400}, int64_t{100'000'000}}) {
      for (const int64_t rest : {0, 2'000, 39'990'000, 500'000'000, 999'990'000}) {
        const int64_t wanted =
            second * per_second + (rest + beat_slack_ns(static_cast<double>(per_second))) * per_second / kSecondNs;
        CHECK(beat_of(second * kSecondNs + rest, static_cast<double>(per_second)) == wanted);
      }
    }
  }
  CHECK(beat_of(-kSecondNs / 2, 1) == -1);
}

TEST_CASE("flow.rate limits what one_in keeps, and takes another rate while it runs") {
  TableTest both(builtin("flow.rate"), {{"one_in", "2"}, {"per_second", "10"}});
  CHECK(kept(both, 25'000'000, 16) == std::set<uint64_t>{0, 4, 8, 12}); // 40 → 20 → 10 a second
  TableTest live(builtin("flow.rate"), {{"per_second", "1"}});
  CHECK(kept(live, 100'000'000, 10).size() == 1);
  live.set("per_second", "0");
  CHECK(live.tick().has("out"));
  CHECK(live.tick().has("out"));
  live.set("per_second", "5");
  CHECK(live.tick().has("out"));
  CHECK(!live.tick().has("out"));
}

TEST_CASE("flow.rate begins anew after a seek") {
  TableTest rate(builtin("flow.rate"), {{"one_in", "4"}, {"per_second", "1"}});
  CHECK(kept(rate, 1'000'000, 3) == std::set<uint64_t>{0});
  REQUIRE(rate.reset() == MR_OK);
  CHECK(rate.tick().has("out"));
}
