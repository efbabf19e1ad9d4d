// A decoupled handler skips ticks that its gate turns away: delays still count them, last values are the edge's own.
#include <doctest/doctest.h>

#include "harness.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("2.3: a delay counts ticks of the clock, also after a gate that lets every second one in") {
  Pipeline p(
      "t.count name=source count=7 ; t.relay name=second every=2 ! t.paced name=paced ! t.sink name=sink log=second ; "
      "source. ! second. policy=queue depth=4 ! paced.extra delay=2");
  Compiled compiled(p, {});
  CHECK(compiled.decoupled("paced"));
  REQUIRE(compiled.run().ok);
  // Ticks 0, 2, 4, 6 have a value; two ticks before each of them was the one before it.
  std::vector<int64_t> seen;
  for (const Seen& entry : compiled.seen("second"))
    if (entry.values[0] != kEmpty) seen.push_back(entry.values[0]);
  CHECK(seen == std::vector<int64_t>{999, 2000, 4002, 6004});
}

TEST_CASE("2.3: a delay reads nothing for a tick that the gate turned away, not the tick before") {
  Pipeline p(
      "t.count name=source count=10 ; t.relay name=slow ! t.paced name=paced ! t.sink name=sink log=turned ; "
      "source. ! slow. policy=queue full=drop_newest ! paced.extra delay=1");
  p.clock(graph::ClockMode::realtime, 100);
  Setup setup;
  setup.workers = 4;
  setup.virtual_time = true;
  setup.costs_ns = {{"slow", 25 * kMs}};
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  const std::vector<Seen> log = result.seen("turned");
  REQUIRE(log.size() > 3);
  CHECK(log.size() < 10);
  for (size_t i = 1; i < log.size(); ++i) {
    const auto tick = static_cast<int64_t>(log[i].index);
    const bool neighbour = log[i - 1].index + 1 == log[i].index;
    CHECK(log[i].values[0] == tick * 1000 + (neighbour ? tick - 1 : 999));
  }
}

TEST_CASE("2.3: a delayed required input repeats the edge's last value, also one of a tick that was not let in") {
  const auto seen = [](bool behind) {
    Pipeline p;
    p.add("source", "t.count", {{"count", "9"}, {"first", "1"}});
    p.add("quiet", "t.relay", {{"silent_every", "3"}});
    p.add("both", "t.need").every = 2;
    p.add("sink", "t.sink", {{"log", "repeats"}});
    p.connect("source", "quiet");
    p.connect("source", "both.a");
    graph::Edge& edge = p.connect("quiet", "both.b");
    edge.delay = 1;
    edge.initial_empty = true;
    p.connect("both", "sink", behind ? graph::Policy::latest : graph::Policy::sync);
    Compiled compiled(p, {});
    CHECK((compiled.decoupled("both")) == behind);
    REQUIRE(compiled.run().ok);
    std::vector<int64_t> even;
    for (const Seen& entry : compiled.seen("repeats"))
      if (entry.index % 2 == 0) even.push_back(entry.values[0]);
    return even;
  };
  // quiet gives 1 2 - 4 5 - 7 8 -; one tick before 0, 2, 4, 6, 8: the initial 0, 2, 4, the repeated 5, 8.
  const std::vector<int64_t> expected{1000, 3002, 5004, 7005, 9008};
  CHECK(seen(false) == expected);
  CHECK(seen(true) == expected);
}

TEST_CASE("2.3: a reader of a queue that requires nothing runs at the queue's values, whether it is decoupled or not") {
  for (const bool behind : {false, true}) {
    CAPTURE(behind);
    Pipeline p;
    p.add("source", "t.count", {{"count", "6"}});
    p.add("second", "t.relay").every = 2;
    p.add("mix", "t.join");
    p.add("sink", "t.sink", {{"log", "values"}});
    p.connect("source", "second");
    p.connect("second", "mix.in", graph::Policy::queue).depth = 4;
    p.connect("source", "mix.in", graph::Policy::latest);
    p.connect("mix", "sink.in");
    if (!behind) p.connect("source", "sink.in");
    Compiled compiled(p, {});
    CHECK((compiled.decoupled("mix")) == behind);
    const Ran result = compiled.run();
    REQUIRE(result.ok);
    CHECK(result.handler("mix").calls == 3);
  }
}

TEST_CASE("8.4: a gate does not come after a step that waits for what comes after the gate") {
  Pipeline p;
  p.add("source", "t.count", {{"count", "12"}});
  for (const char* name : {"first", "side", "back"}) p.add(name, "t.relay");
  for (const char* name : {"aside", "joined"}) p.add(name, "t.sink", {{"log", name}});
  graph::Edge& before = p.connect("back", "first"); // a tick before: so first is ordered after back
  before.delay = 1;
  before.initial_empty = true;
  p.connect("source", "side", graph::Policy::latest); // side and aside are a group of their own
  p.connect("side", "aside.in");
  p.connect("first", "aside.in"); // the group begins once this is there
  p.connect("source", "joined.in");
  p.connect("side", "back", graph::Policy::latest);
  p.connect("first", "joined.in");
  p.connect("back", "joined.in");
  for (const uint32_t workers : {1u, 2u}) {
    CAPTURE(workers);
    Setup setup;
    setup.workers = workers;
    setup.virtual_time = true;
    Compiled compiled(p, setup);
    CHECK(compiled.decoupled("side"));
    const Ran result = compiled.run();
    REQUIRE(result.error.what == "");
    CHECK(values(result.seen("joined"), 1) == values(result.seen("aside"), 1));
  }
}
