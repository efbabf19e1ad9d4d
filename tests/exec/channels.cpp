// Edge policies do not wait for each other, do not forget who is late, and refuse a plan that cannot run.
#include <doctest/doctest.h>

#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Two sources with clocks of their own: `a` at 10 a second, `b` at 100 and counting from 500.
Pipeline two_clocks(int64_t a_count, int64_t b_count) {
  Pipeline p;
  for (const char* name : {"slow", "fast"}) {
    p.clock(graph::ClockMode::source);
    p.graph.clocks.back().name = name;
  }
  p.add("a", "t.count", {{"count", std::to_string(a_count)}, {"rate", "10"}}).clock = "slow";
  p.add("b", "t.count", {{"count", std::to_string(b_count)}, {"rate", "100"}, {"first", "500"}}).clock = "fast";
  return p;
}

// Threads, one and two, and virtual time: a wait that cannot end is an error there and an idle report here.
std::vector<Setup> ways_to_run() {
  std::vector<Setup> ways(3);
  ways[1].workers = 2;
  ways[2].virtual_time = true;
  return ways;
}

} // namespace

TEST_CASE("2.3: latest between clocks takes what is due before it waits, so a slower reader does not stop the writer") {
  for (const Setup& setup : ways_to_run()) {
    Pipeline p = two_clocks(5, 50);
    p.add("x", "t.paced");
    p.add("sink", "t.sink", {{"log", "slow reader"}});
    p.connect("a", "x.in");
    p.connect("b", "x.extra", graph::Policy::latest);
    p.connect("x", "sink");
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    const std::vector<int64_t> expected = {500, 1510, 2520, 3530, 4540}; // b at the same media time
    CHECK(values(ran.seen("slow reader")) == expected);
  }
}

TEST_CASE("2.3: latest and align between clocks drop values that a reader after a gate can no longer ask for") {
  for (const bool align : {false, true}) {
    for (const Setup& setup : ways_to_run()) {
      Pipeline p = two_clocks(31, 310);
      p.add("x", "t.paced");
      p.add("seldom", "t.paced").every = 15;
      p.add("over", "t.paced");
      p.add("sink", "t.sink", {{"log", "seldom"}});
      p.connect("a", "x.in");
      p.connect("b", "x.extra", graph::Policy::latest);
      p.connect("a", "seldom.in");
      p.connect("b", "seldom.extra", align ? graph::Policy::align : graph::Policy::latest).within_ns = 2'000'000;
      p.connect("x", "over.in");
      p.connect("seldom", "over.extra", graph::Policy::latest);
      p.connect("over", "sink");
      const Ran ran = run(p, setup);
      REQUIRE(ran.ok);
      const std::vector<int64_t> seen = values(ran.seen("seldom"));
      REQUIRE(seen.size() == 31);
      for (int64_t i = 0; i < 31; ++i) {
        const int64_t at = i / 15 * 15;
        CHECK(seen[static_cast<size_t>(i)] == (i * 1000 + 500 + i * 10) * 1000 + at * 1000 + 500 + at * 10);
      }
    }
  }
}

TEST_CASE("2.3: latest within a clock does not wait for a reader that runs seldom or whose gate lets nothing in") {
  for (const bool silent : {false, true}) {
    for (const Setup& setup : ways_to_run()) {
      Pipeline p;
      p.add("source", "t.count", {{"count", "60"}});
      p.add("gate", "t.relay", {{"silent_every", silent ? "1" : "0"}});
      p.add("track", "t.relay");
      p.add("detect", "t.paced").every = silent ? 1 : 15;
      p.add("over", "t.paced");
      p.add("sink", "t.sink", {{"log", "every"}});
      p.connect("source", "gate");
      p.connect("source", "track");
      p.connect("gate", "detect.in");
      p.connect("track", "detect.extra", graph::Policy::latest);
      p.connect("source", "over.in");
      p.connect("detect", "over.extra", graph::Policy::latest);
      p.connect("over", "sink");
      const Ran ran = run(p, setup);
      REQUIRE(ran.ok);
      const std::vector<int64_t> seen = values(ran.seen("every"));
      REQUIRE(seen.size() == 60);
      for (int64_t i = 0; i < 60; ++i) {
        const int64_t extra = silent ? 999 : i / 15 * 15 * 1001;
        CHECK(seen[static_cast<size_t>(i)] == i * 1000 + extra);
      }
    }
  }
}

TEST_CASE(
    "2.3: a result that is pending before latest or a gate is pending after it too, and the window has room for both") {
  for (const Setup& setup : ways_to_run()) {
    for (const bool behind : {false, true}) {
      CAPTURE(behind);
      Pipeline p;
      p.clock(graph::ClockMode::free, 0, 1, 1);
      p.add("source", "t.count", {{"count", "40"}});
      p.add("late", "t.late");
      p.add("d", "t.relay"); // decoupled where its only reader takes the latest
      p.add("x", "t.paced");
      p.add("later", "t.late");
      p.add("sink", "t.sink", {{"log", "pending"}});
      p.connect("source", "late");
      p.connect("late", "sink.in");
      p.connect("late", "d");
      p.connect("source", "x.in");
      p.connect(behind ? "d" : "late", "x.extra", graph::Policy::latest);
      if (!behind) p.connect("d", "sink.in");
      p.connect("x", "later");
      p.connect("later", "sink.in");
      Compiled compiled(p, setup);
      CHECK(compiled.window("later") == 17);
      REQUIRE(compiled.run().ok);
      const std::vector<int64_t> seen = values(compiled.seen("pending"), behind ? 1 : 2);
      REQUIRE(seen.size() == 40);
      for (int64_t i = 0; i < 40; ++i) CHECK(seen[static_cast<size_t>(i)] == i * 1001);
    }
  }
}

TEST_CASE("2.3: a decoupled handler that reads a pending result by latest has room in its window for the wait") {
  for (const Setup& setup : ways_to_run()) {
    Pipeline p(
        "t.count name=source count=40 ! t.late name=late ; source. ! t.paced name=d ; source. ! t.paced name=over ; "
        "late. ! t.sink name=sink log='behind pending' ; late. ! d.extra policy=latest ! over.extra policy=latest ! "
        "sink.in");
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    const std::vector<int64_t> seen = values(ran.seen("behind pending"), 1);
    REQUIRE(seen.size() == 40);
    for (int64_t i = 0; i < 40; ++i) CHECK(seen[static_cast<size_t>(i)] == i * 1000 + i * 1001);
  }
}

TEST_CASE("2.3: a loop is refused where latest or a gate on its way brings what is pending for longer than its delay") {
  for (const bool behind : {false, true}) {
    Pipeline p(
        "t.count name=source count=40 ! t.paced name=tracker ! t.late name=late ! t.sink name=sink log=loop ; "
        "late. ! t.relay name=d ; source. ! t.paced name=x");
    p.connect(behind ? "d" : "late", "x.extra", graph::Policy::latest);
    graph::Edge& back = p.connect("x", "tracker.extra");
    back.delay = 8;
    CHECK(code_of(p) == 405);
    p.graph.edges.back().delay = 9;
    Setup setup;
    setup.virtual_time = true;
    CHECK(run(p, setup).ok);
  }
}

TEST_CASE("2.3: delay counts ticks, so it is refused beside any policy but sync") {
  for (const graph::Policy policy : {graph::Policy::latest, graph::Policy::queue}) {
    Pipeline p("t.count name=source count=9 ! t.paced name=a ! t.relay name=b");
    graph::Edge& edge = p.connect("b", "a.extra", policy);
    edge.delay = 1;
    edge.initial_empty = true;
    CHECK(code_of(p) == 215);
    p.graph.edges.back().policy = graph::Policy::sync;
    CHECK(code_of(p) == 0);
  }
}

TEST_CASE("2.4: a source does not run as several instances") {
  Pipeline p;
  p.add("source", "t.index").concurrency = 2;
  p.add("sink", "t.sink", {{"log", "lanes"}});
  p.connect("source", "sink");
  CHECK(code_of(p) == 409);
  p.graph.handlers[0].concurrency = 1;
  CHECK(code_of(p) == 0);
}
