// The seven pipelines of semantics.md §6, tick by tick, in virtual time where time matters.
#include <doctest/doctest.h>

#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

const EdgeReport& edge_to(const Report& report, const std::string& to) {
  for (const EdgeReport& edge : report.edges)
    if (edge.to == to) return edge;
  throw std::invalid_argument("no edge to " + to);
}

std::vector<uint64_t> indices(const std::vector<Seen>& log) {
  std::vector<uint64_t> list;
  for (const Seen& seen : log) list.push_back(seen.index);
  return list;
}

// (a) file → detect (every 3, slow) –latest→ overlay ← sync video; a writer behind a queue.
Pipeline street(graph::ClockMode mode, const std::string& log, uint32_t depth = 8) {
  Pipeline p;
  p.clock(mode, mode == graph::ClockMode::realtime ? 100 : 0);
  p.add("video", "t.count", {{"count", "40"}, {"rate", "100"}});
  p.add("detect", "t.relay").every = 3;
  p.add("overlay", "t.paced");
  p.add("writer", "t.sink", {{"log", log + ".writer"}});
  p.add("show", "t.sink", {{"log", log + ".show"}});
  p.connect("video", "detect");
  p.connect("video", "overlay.in");
  p.connect("detect", "overlay.extra", graph::Policy::latest);
  graph::Edge& queue = p.connect("overlay", "writer", graph::Policy::queue);
  queue.depth = depth;
  queue.full = graph::Full::drop_oldest;
  p.connect("overlay", "show");
  return p;
}

} // namespace

TEST_CASE("6a: a slow detector misses its turns, the overlay takes the newest result, and every drop has a cause") {
  Setup setup;
  setup.workers = 4;
  setup.virtual_time = true;
  // One detection takes 45 ms: it begins at tick 0 (0 ms), is busy at ticks 3 (30 ms), free at 45 ms, begins at tick 6
  // …
  setup.costs_ns = {{"detect", 45 * kMs}, {"overlay", 1 * kMs}, {"writer", 1 * kMs}};
  const Ran result = run(street(graph::ClockMode::realtime, "6a"), setup);
  REQUIRE(result.ok);
  CHECK(result.report.ticks_run == 40);
  CHECK(result.handler("detect").calls == 7);                         // ticks 0, 6, 12, …, 36
  CHECK(edge_to(result.report, "detect.in").dropped.at("busy") == 7); // ticks 3, 9, …, 39
  const std::vector<Seen> show = result.seen("6a.show");
  REQUIRE(show.size() == 40);
  for (const Seen& seen : show) {
    const auto tick = static_cast<int64_t>(seen.index);
    // The detection of tick 6k is done 45 ms later: first seen at tick 6k + 5 (at 45 ms it is 5 ms old).
    const int64_t newest = tick < 5 ? 999 : (tick - 5) / 6 * 6;
    CHECK(seen.values[0] == tick * 1000 + newest);
  }
  CHECK(indices(result.seen("6a.writer")).size() == 40);
}

TEST_CASE("6a: a writer that is too slow loses the oldest of its queue, and the tick goes on") {
  Setup setup;
  setup.workers = 4;
  setup.virtual_time = true;
  setup.costs_ns = {{"writer", 25 * kMs}};
  const Ran result = run(street(graph::ClockMode::realtime, "6aq", 2), setup);
  REQUIRE(result.ok);
  CHECK(result.report.ticks_run == 40);
  CHECK(result.report.ticks_late == 0);
  const std::vector<uint64_t> written = indices(result.seen("6aq.writer"));
  const uint64_t dropped = edge_to(result.report, "writer.in[0]").dropped.at("queue_full");
  CHECK(written.size() + dropped == 40);
  CHECK(dropped > 15);
  CHECK(written.front() == 0);
  CHECK(written.back() == 39); // the newest is kept
  for (size_t i = 1; i < written.size(); ++i) CHECK(written[i] > written[i - 1]);
}

TEST_CASE("2.5: under free the slow detector is waited for, and drops act as block, with any number of threads") {
  std::vector<Seen> first;
  for (const uint32_t workers : {1u, 2u, 8u}) {
    CAPTURE(workers);
    Setup setup;
    setup.workers = workers;
    const Ran result = run(street(graph::ClockMode::free, "free"), setup);
    REQUIRE(result.ok);
    const std::vector<Seen> show = result.seen("free.show");
    REQUIRE(show.size() == 40);
    for (const Seen& seen : show) CHECK(seen.values[0] == static_cast<int64_t>(seen.index * 1000 + seen.index / 3 * 3));
    CHECK(indices(result.seen("free.writer")).size() == 40);
    CHECK(edge_to(result.report, "detect.in").dropped.empty());
    CHECK(edge_to(result.report, "writer.in[0]").dropped.empty());
  }
}

TEST_CASE("6b: tracker, delayed loop through a device that is silent on some ticks, in-place drawing, preview") {
  std::vector<Seen> expected;
  for (const bool on_sim : {false, true}) {
    for (const bool adversarial : {false, true}) {
      CAPTURE(on_sim);
      CAPTURE(adversarial);
      Pipeline p;
      p.clock(graph::ClockMode::free, 0, 1, 3);
      p.add("video", "t.count", {{"count", "30"}});
      p.add("detect", "t.paced").device = on_sim ? "sim:0" : "cpu";
      p.add("quiet", "t.relay", {{"silent_every", "4"}}).device = on_sim ? "sim:0" : "cpu";
      p.add("tracker", "t.paced");
      p.add("preview", "t.relay");
      p.add("draw", "t.paint", {{"add", "100"}});
      p.add("sink", "t.sink", {{"log", "6b"}});
      p.connect("video", "detect.in");
      graph::Edge& loop = p.connect("tracker", "detect.extra");
      loop.delay = 1;
      loop.initial_empty = true;
      p.connect("detect", "quiet");
      p.connect("video", "tracker.in");
      p.connect("quiet", "tracker.extra");
      p.connect("tracker", "preview");
      p.connect("tracker", "draw");
      p.connect("draw", "sink.in");
      p.connect("preview", "sink.in");
      Setup setup;
      setup.workers = 2;
      setup.domains = on_sim ? std::vector<std::string>{"cpu", "sim:0"} : std::vector<std::string>{"cpu"};
      setup.adversarial = adversarial;
      const Ran result = run(p, setup);
      REQUIRE(result.ok);
      const std::vector<Seen> log = result.seen("6b");
      REQUIRE(log.size() == 30);
      for (const Seen& seen : log) CHECK(seen.values[0] == seen.values[1] + 100);
      if (expected.empty()) expected = log;
      CHECK(log == expected);
      // The tracker's value at tick i: i × 1000 + detection, where the detection is i × 1000 + the tracker's last.
      int64_t tracker = 0;
      for (int64_t i = 0; i < 30; ++i) {
        tracker = i * 1000 + (i % 4 == 3 ? 999 : i * 1000 + tracker);
        CHECK(log[static_cast<size_t>(i)].values[1] == tracker);
      }
    }
  }
}

TEST_CASE("6c: two cameras with clocks of their own meet by latest, queue and align") {
  Pipeline p;
  graph::Clock left, right;
  left.name = "left";
  right.name = "right";
  left.mode = right.mode = graph::ClockMode::source;
  p.graph.clocks = {left, right};
  p.add("a", "t.count", {{"count", "10"}, {"rate", "100"}}).clock = "left";
  p.add("b", "t.count", {{"count", "5"}, {"rate", "50"}, {"first", "500"}}).clock = "right";
  p.add("newest", "t.paced");
  p.add("oldest", "t.paced");
  p.add("nearest", "t.paced");
  p.add("sink", "t.sink", {{"log", "6c"}});
  for (const char* name : {"newest", "oldest", "nearest"}) p.connect("a", std::string(name) + ".in");
  p.connect("b", "newest.extra", graph::Policy::latest);
  graph::Edge& queue = p.connect("b", "oldest.extra", graph::Policy::queue);
  queue.depth = 4;
  queue.full = graph::Full::drop_oldest; // a blocking one could make its writer late, and the others wait (8.2)
  p.connect("b", "nearest.extra", graph::Policy::align).within_ns = 3 * kMs;
  for (const char* name : {"newest", "oldest", "nearest"}) p.connect(name, "sink.in");
  for (const uint32_t workers : {1u, 2u}) {
    Setup setup;
    setup.workers = workers;
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    const std::vector<Seen> log = result.seen("6c");
    REQUIRE(log.size() == 10);
    for (int64_t i = 0; i < 10; ++i) { // a at 10 i ms, b at 20 j ms
      const std::vector<int64_t>& seen = log[static_cast<size_t>(i)].values;
      CHECK(seen[0] == i * 1000 + 500 + i / 2);
      CHECK(seen[1] == i * 1000 + (i % 2 == 0 ? 500 + i / 2 : 999));
      CHECK(seen[2] == i * 1000 + (i % 2 == 0 ? 500 + i / 2 : 999));
    }
  }
}

TEST_CASE("6d: a late first tick under realtime skips the beats it missed, and media time stays on the grid") {
  Pipeline p("t.count name=source count=8 ! t.relay name=slow ! t.sink name=sink log=6d");
  p.clock(graph::ClockMode::realtime, 100, 1, 2);
  Setup setup;
  setup.workers = 2;
  setup.virtual_time = true;
  setup.costs_ns = {{"slow", 8 * kMs}}; // the plan gives it a segment of its own
  setup.options.cost_ns = [](const std::string& name, uint64_t index) {
    return name == "slow" && index == 0 ? 35 * kMs : int64_t{0};
  };
  Compiled compiled(p, setup);
  CHECK(compiled.window("slow") == 2);
  CHECK(compiled.ring("source").length == 2);
  const Ran result = compiled.run();
  REQUIRE(result.ok);
  // Beats 0 and 1 fill the window; those of 20 and 30 ms come while it is full.
  CHECK(result.report.ticks_late == 2);
  const std::vector<Seen> log = result.seen("6d");
  REQUIRE(log.size() == 8);
  std::vector<int64_t> beats;
  for (const Seen& seen : log) {
    CHECK(seen.media_time_ns % (10 * kMs) == 0);
    beats.push_back(seen.media_time_ns / (10 * kMs));
  }
  CHECK(beats == std::vector<int64_t>{0, 1, 4, 5, 6, 7, 8, 9});
  for (size_t i = 0; i < log.size(); ++i) CHECK(log[i].index == i); // no gaps in the index
}

TEST_CASE("6e: an encoder that answers after 8 frames widens the window of 4 to 12") {
  Pipeline p(
      "t.count name=source count=25 ! t.late name=encoder after=8 ! t.sink name=sink log=6e ; source. ! sink.in");
  p.clock(graph::ClockMode::free, 0, 1, 4);
  Compiled compiled(p, {});
  CHECK(compiled.window("encoder") == 12);
  CHECK(compiled.ring("source").length == 12);
  CHECK(compiled.slots("encoder") == 16);
  REQUIRE(compiled.run().ok);
  const std::vector<Seen> log = compiled.seen("6e");
  REQUIRE(log.size() == 25);
  for (const Seen& seen : log) CHECK(seen.values[0] == seen.values[1]);
}

TEST_CASE("6f: a loop whose tracker is silent once goes on with the last value") {
  Pipeline p(
      "t.count name=source count=12 first=1 ; t.need name=tracker ; source. ! t.relay name=quiet fail_at=5 "
      "on_error=skip ; tracker. ! t.sink name=sink log=6f ; source. ! tracker.a ; quiet. ! tracker.b delay=1 "
      "initial=empty");
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < 12; ++i) {
    const int64_t last = i == 0 ? 0 : i == 6 ? 5 : i; // tick 5 was silent: tick 6 repeats tick 4's value, 5
    expected.push_back((i + 1) * 1000 + last);
  }
  CHECK(values(ran.seen("6f")) == expected);
}

TEST_CASE("6g: rings of several lengths that meet in one captured region get one length") {
  Pipeline p;
  p.clock(graph::ClockMode::free, 0, 1, 3);
  p.add("source", "t.count", {{"count", "40"}});
  for (const char* name : {"a", "b", "c", "d"}) p.add(name, "t.capturable", {{"add", "1"}}).device = "sim:0";
  p.add("late", "t.paced");
  p.add("sink", "t.sink", {{"log", "6g"}});
  p.connect("source", "a");
  p.connect("a", "b");
  p.connect("b", "c");
  p.connect("c", "d");
  p.connect("d", "late.in");
  p.connect("b", "late.extra").delay = 4;
  p.connect("late", "sink");
  Setup setup;
  setup.domains = {"cpu", "sim:0"};
  Compiled compiled(p, setup);
  REQUIRE(compiled.regions().size() == 1);
  CHECK(compiled.regions()[0].steps.size() == 4);
  const uint32_t length = compiled.ring("a").length;
  for (const char* name : {"a", "b", "c", "d"}) CHECK(compiled.ring(name).length == length);
  CHECK(compiled.regions()[0].slots == length);
  const Ran result = compiled.run();
  REQUIRE(result.ok);
  const std::vector<Seen> log = result.seen("6g");
  REQUIRE(log.size() == 40);
  for (int64_t i = 0; i < 40; ++i)
    CHECK(log[static_cast<size_t>(i)].values[0] == (i + 4) * 1000 + (i < 4 ? 999 : i - 4 + 2));
}
