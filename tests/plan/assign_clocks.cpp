// Tests which source paces a clock, and which clock a handler belongs to. Decoupled handlers are in decoupled.cpp.
#include <doctest/doctest.h>

#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// One sink that reads all of them.
Pipeline sources(const std::vector<Params>& params) {
  Pipeline p;
  p.add("sink", "t.sink", {{"log", "none"}});
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string name = "source" + std::to_string(i);
    p.add(name, "t.count", params[i]);
    p.connect(name, "sink.in");
  }
  return p;
}

// source0 and the sink are of the clock "left", source1 is of "right"; the sink reads it by latest.
Pipeline two_clocks() {
  Pipeline p = sources({{{"rate", "30"}}, {{"rate", "25"}}});
  p.graph.clocks.resize(2);
  p.graph.clocks[0].name = "left";
  p.graph.clocks[1].name = "right";
  p.graph.handlers[1].clock = "left";
  p.graph.handlers[2].clock = "right";
  p.graph.edges[1].policy = graph::Policy::latest;
  return p;
}

ClockView only_clock(const Pipeline& p, const plan::Options& options = {}) {
  const Planned planned(p, {}, options);
  REQUIRE(planned.clocks().size() == 1);
  return planned.clocks()[0];
}

} // namespace

TEST_CASE("1.2: the source that a clock follows is the one with a rate, wherever it stands") {
  const Planned planned(sources({{}, {{"rate", "30"}}, {}}));
  CHECK(planned.clocks()[0].mode == "source");
  CHECK(planned.clocks()[0].driver == "source1");
}

TEST_CASE("1.2: several sources of one rate, none of them live, run free") {
  CHECK(only_clock(sources({{{"rate", "30"}}, {{"rate", "30"}}})).mode == "free");
}

TEST_CASE("1.2: what the file says comes before the default, and what the command line says before the file") {
  Pipeline p = sources({{{"rate", "24"}}});
  p.clock(graph::ClockMode::free);
  CHECK(only_clock(p).mode == "free");
  p.graph.clocks[0].mode = graph::ClockMode::realtime;
  CHECK(only_clock(p).rate.numerator == 24); // the source's, where the clock has none
  p.graph.clocks[0].rate = {30000, 1001};
  CHECK(only_clock(p).rate.numerator == 30000);
  CHECK(only_clock(p).rate.denominator == 1001);
  plan::Options options;
  options.rate = graph::Rational{60, 1};
  CHECK(only_clock(p, options).rate.numerator == 60);
  CHECK(only_clock(p, options).mode == "realtime");
  options.clock = graph::ClockMode::free;
  CHECK(only_clock(p, options).mode == "free");
}

TEST_CASE("1.2: a live source without any rate cannot pace a realtime clock") {
  CHECK(refusal(sources({{{"live", "true"}}})) == 406);
  CHECK(refusal(sources({{{"live", "true"}, {"rate", "30"}}})) == 0);
}

TEST_CASE("1.3: each clock has the rate and the driver of its own source") {
  const Planned planned(two_clocks());
  REQUIRE(planned.clocks().size() == 2);
  CHECK(planned.clocks()[0].rate.numerator == 30);
  CHECK(planned.clocks()[1].rate.numerator == 25);
  CHECK(planned.clocks()[0].driver == "source0");
  CHECK(planned.clocks()[1].driver == "source1");
  CHECK(planned.clocks()[0].sources == std::vector<std::string>{"source0"});
  CHECK(planned.clocks()[1].sources == std::vector<std::string>{"source1"});
}

TEST_CASE("1.3: a handler without sync inputs belongs to the clock of the others, if that is one") {
  Pipeline p = two_clocks();
  p.add("later", "t.relay");
  p.connect("source1", "later", graph::Policy::queue).depth = 4;
  CHECK(Planned(p).clock("later") == 1);
  CHECK(Planned(p).clock("sink") == 0); // one sync input, and one of the other clock
}

TEST_CASE("1.3: where the sync inputs of a handler belong to several clocks, naming one of them is not enough") {
  Pipeline p = two_clocks();
  p.graph.edges[1].policy = graph::Policy::sync;
  CHECK(refusal(p) == 406);
  p.graph.handlers[0].clock = "left";
  CHECK(refusal(p) == 406); // the edge of the other clock needs a policy all the same
  p.graph.edges[1].policy = graph::Policy::latest;
  CHECK(refusal(p) == 0);
}

TEST_CASE("1.3: delay counts the ticks of one clock, so it does not lead to another") {
  Pipeline p = two_clocks();
  p.graph.handlers[0].clock = "left";
  p.graph.edges[1].policy = graph::Policy::sync;
  p.graph.edges[1].delay = 1;
  p.graph.edges[1].initial_empty = true;
  CHECK(refusal(p) == 406);
  p.graph.handlers[2].clock = "left";
  p.graph.clocks[0].mode = graph::ClockMode::free;
  p.graph.clocks[0].rate = {30, 1};
  p.graph.clocks.pop_back();
  CHECK(refusal(p) == 0);
}

TEST_CASE("2.3: lag counts the ticks of one clock: between clocks it is refused, and within one it is not") {
  Pipeline p = two_clocks();
  p.graph.handlers[0].clock = "left";
  p.graph.edges[1].lag = 2;
  CHECK(refusal(p) == 215);
  p.graph.edges[1].lag = 0;
  CHECK(refusal(p) == 0);
  p.graph.edges[1].lag = 2;
  p.graph.handlers[2].clock = "left";
  p.graph.clocks[0].mode = graph::ClockMode::free;
  p.graph.clocks[0].rate = {30, 1};
  p.graph.clocks.pop_back();
  CHECK(refusal(p) == 0);
}

TEST_CASE("1.3: align is refused within one clock, where it would wait for itself") {
  Pipeline p = two_clocks();
  p.graph.handlers[0].clock = "left";
  p.graph.edges[1].policy = graph::Policy::align;
  p.graph.edges[1].within_ns = 1'000'000;
  CHECK(refusal(p) == 0);
  p.graph.handlers[2].clock = "left";
  p.graph.clocks[0].mode = graph::ClockMode::free;
  p.graph.clocks[0].rate = {30, 1};
  p.graph.clocks.pop_back();
  CHECK(refusal(p) == 215);
}

TEST_CASE("2.3: initial is refused where no earlier value is read") {
  for (const graph::Policy policy : {graph::Policy::sync, graph::Policy::queue, graph::Policy::latest}) {
    Pipeline p = line({"t.relay"}, "none", 1);
    p.graph.edges[0].policy = policy;
    CHECK(refusal(p) == 0);
    p.graph.edges[0].initial_empty = true;
    CHECK(refusal(p) == (policy == graph::Policy::latest ? 0 : 215));
  }
}

TEST_CASE("1.3: with several clocks a source says which one it belongs to") {
  Pipeline p = two_clocks();
  p.graph.handlers[2].clock = "";
  CHECK(refusal(p) == 406);
}

TEST_CASE("1.2: a clock that is to follow a source has one") {
  Pipeline p = two_clocks();
  p.graph.clocks.push_back({});
  p.graph.clocks[2].name = "nobody";
  CHECK(refusal(p) == 0);
  p.graph.clocks[2].mode = graph::ClockMode::source;
  CHECK(refusal(p) == 406);
}
