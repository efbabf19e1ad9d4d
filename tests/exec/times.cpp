// Media times at their ends: they rise strictly, saturate, and a clock that cannot rise any more fails
// (semantics.md 8.9). Empty initial values have the port's format (8.5).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include "exec/source.h"
#include "harness.h"
#include "observe/error.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Stamps its values with the times that the test chose; gives the last together with the end where it is told so.
std::vector<int64_t> stamps;
struct Stamped final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> rate{*this, "rate", 10, "values a second"};
  Param<bool> ends_with_value{*this, "ends_with_value", false, "says the end with its last value"};
  Param<bool> waits{*this, "waits", false, "is read by a thread of its own"};
  size_t next = 0;
  void probe(Facts& facts) override {
    facts.rate(rate);
    if (waits) facts.waits();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (next == stamps.size()) return tick.end();
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = static_cast<int64_t>(next);
    out.header(tick).pts_ns = stamps[next++];
    if (ends_with_value && next == stamps.size()) tick.end();
  }
};

struct Thing {
  static constexpr std::string_view kSchema = "test.Thing";
};
struct Things final : Handler {
  Output<Object<Thing>> out{*this, "out"};
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct TakesThings final : Handler {
  Input<Object<Thing>> in{*this, "in"};
  void process(Tick&, Cpu&) {}
};
// Writes down what an empty value says of itself.
std::string described;
struct Describe final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick& tick, Cpu&) {
    const TensorView view = in(tick);
    if (tick.index() == 0)
      described = std::to_string(view.dtype().bits) + " bits, rank " + std::to_string(view.shape().size()) + ", " +
                  std::to_string(view.shape()[0]) + "x" + std::to_string(view.shape()[1]) + ", " +
                  std::to_string(view.elements<float>().size()) + " elements";
  }
};
struct Planes final : Handler {
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<float>(), {3, 4}); }
  void process(Tick& tick, Cpu&) {
    if (tick.index() == 2) return tick.end();
    const int64_t shape[] = {3, 4};
    out.allocate(tick, dtype_of<float>(), shape);
  }
};

const mr_plugin& times_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Stamped>::table("times.stamped", "", ""), detail::Type<Things>::table("times.things", "", ""),
      detail::Type<TakesThings>::table("times.takes", "", ""), detail::Type<Describe>::table("times.describe", "", ""),
      detail::Type<Planes>::table("times.planes", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3], &types[4]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "times", "1", pointers, 5, 0};
  return plugin;
}

Setup times_setup() {
  Setup setup;
  setup.more = &times_plugin();
  return setup;
}

Pipeline stamped(const std::map<std::string, std::string>& params = {}) {
  Pipeline p;
  p.add("source", "times.stamped", params);
  p.add("sink", "t.sink", {{"log", "times"}});
  p.connect("source", "sink");
  return p;
}

std::vector<int64_t> times_of(const std::vector<Seen>& log) {
  std::vector<int64_t> times;
  for (const Seen& seen : log) times.push_back(seen.media_time_ns);
  return times;
}

} // namespace

TEST_CASE("8.9: a time that does not rise is the last and one nanosecond, told once and counted") {
  stamps = {INT64_MIN, 100, 100, 50, 200, 200};
  std::vector<std::string> told;
  Setup setup = times_setup();
  setup.options.on_message = [&](const std::string& line) { told.push_back(line); };
  const Ran result = run(stamped(), setup);
  REQUIRE(result.ok);
  CHECK(times_of(result.seen("times")) == std::vector<int64_t>{INT64_MIN, 100, 101, 102, 200, 201});
  CHECK(told.size() == 1);
  CHECK(told[0].find("warning source: a media time does not rise") == 0);
  CHECK(result.report.handlers[0].counts.at("times_replaced") == 3);
}

TEST_CASE("8.9: no time is later than the largest one: the run fails there, and no time wraps") {
  stamps = {0, INT64_MAX, 5};
  const Ran result = run(stamped(), times_setup());
  CHECK_FALSE(result.ok);
  CHECK(result.error.what.find("source (times.stamped) failed at tick 2: no media time is later") == 0);
  CHECK(times_of(result.seen("times")) == std::vector<int64_t>{0, INT64_MAX});
}

TEST_CASE("8.9: under realtime a time that does not rise is due one period after the last") {
  stamps = {0, 0, 0, 0, 0};
  Pipeline p = stamped();
  p.clock(graph::ClockMode::realtime, 20);
  Setup setup = times_setup();
  setup.virtual_time = true;
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  std::vector<int64_t> seen;
  for (const int64_t value : values(result.seen("times")))
    if (value != kEmpty) seen.push_back(value);
  CHECK(seen == std::vector<int64_t>{0, 1, 2, 3, 4}); // one at every second beat, and none passed over
  CHECK(result.report.handlers[0].counts.at("times_replaced") == 4);
}

TEST_CASE("8.9: a value that is given together with the end is delivered, and the end comes after it") {
  for (const char* waits : {"false", "true"}) {
    for (const bool realtime : {false, true}) {
      CAPTURE(std::string(waits));
      CAPTURE(realtime);
      stamps = {0, 100'000'000, 200'000'000, 300'000'000, 400'000'000};
      Pipeline p = stamped({{"ends_with_value", "true"}, {"waits", waits}, {"rate", "10"}});
      if (realtime) p.clock(graph::ClockMode::realtime, 10);
      const Ran result = run(p, times_setup());
      REQUIRE(result.ok);
      std::vector<int64_t> seen;
      for (const int64_t value : values(result.seen("times")))
        if (value != kEmpty) seen.push_back(value);
      // On a busy machine a beat of realtime comes late, and passes over a value that a newer one overtook.
      const std::map<std::string, uint64_t>& dropped = result.report.edges[0].dropped;
      const auto passed_over = dropped.find("rate");
      CHECK(seen.size() + (passed_over == dropped.end() ? 0 : passed_over->second) == 5);
      CHECK((realtime || seen.size() == 5));
      REQUIRE_FALSE(seen.empty());
      CHECK(std::is_sorted(seen.begin(), seen.end()));
      CHECK(seen.back() == 4);
    }
  }
}

TEST_CASE("8.9: a clock of a beat each nanosecond runs, and passes over what it cannot keep") {
  Pipeline p = line({"t.relay"}, "fast", 50);
  p.clock(graph::ClockMode::realtime, 1'000'000'000);
  const Ran result = run(p);
  REQUIRE(result.ok);
  CHECK(result.report.ticks_run == 50);
  CHECK(result.seen("fast").size() == 50);
}

TEST_CASE("8.9: when a beat is due saturates at the largest time") {
  CHECK(exec::beat_ns({30, 1}, 30) == 1'000'000'000);
  CHECK(exec::beat_ns({1, 1}, INT64_MAX) == INT64_MAX);
  CHECK(exec::beat_ns({1, INT64_MAX}, 2) == INT64_MAX);
}

TEST_CASE("8.5: an empty initial tensor has the port's dtype and dimensions, and a first extent of 0") {
  for (const bool latest : {false, true}) {
    described = "";
    Pipeline p;
    p.add("source", "times.planes");
    p.add("describe", "times.describe");
    graph::Edge& edge = p.connect("source", "describe", latest ? graph::Policy::latest : graph::Policy::sync);
    (latest ? edge.lag : edge.delay) = 1;
    edge.initial_empty = true;
    const Ran ran = run(p, times_setup());
    REQUIRE(ran.ok);
    CHECK(described == "32 bits, rank 2, 0x4, 0 elements");
  }
}

TEST_CASE("8.5: a host object has no empty value, so an initial one is refused") {
  Pipeline p;
  p.add("source", "times.things");
  p.add("takes", "times.takes");
  graph::Edge& edge = p.connect("source", "takes");
  edge.delay = 1;
  edge.initial_empty = true;
  int code = 0;
  try {
    Compiled compiled(p, times_setup());
  } catch (const Failure& failure) {
    code = failure.error().code;
  }
  CHECK(code == 407);
}
