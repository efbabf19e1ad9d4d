// One graph over several nodes: far paces, the ends of crossings, and the same outputs as on one machine.
#include <doctest/doctest.h>

#include <algorithm>

#include "observe/error_codes.h"
#include "spread.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Puts the named handlers on the node.
void put(Pipeline& pipeline, const std::string& node, const std::vector<std::string>& handlers) {
  for (const std::string& name : handlers)
    for (graph::Handler& handler : pipeline.graph.handlers)
      if (handler.name == name) handler.node = node;
}

Nodes two(int64_t latency_ns) {
  Nodes nodes;
  nodes.names = {"home", "gpu"};
  nodes.link = [=](size_t, size_t) { return Link{latency_ns, 0, {}}; };
  return nodes;
}

} // namespace

// (a) of semantics §6: file → detect (every 3, slow) –latest→ overlay ← sync video; a writer behind a queue.
Pipeline street(graph::ClockMode mode) {
  Pipeline p;
  p.clock(mode, mode == graph::ClockMode::realtime ? 100 : 0);
  p.add("video", "t.count", {{"count", "40"}, {"rate", "100"}});
  p.add("detect", "t.relay").every = 3;
  p.add("overlay", "t.paced");
  p.add("writer", "t.sink", {{"log", "writer"}});
  p.add("show", "t.sink", {{"log", "show"}});
  p.connect("video", "detect");
  p.connect("video", "overlay.in");
  p.connect("detect", "overlay.extra", graph::Policy::latest);
  graph::Edge& queue = p.connect("overlay", "writer", graph::Policy::queue);
  queue.depth = 8;
  queue.full = graph::Full::drop_oldest;
  p.connect("overlay", "show");
  return p;
}

TEST_CASE("7.13: a line whose middle is on another node gives what it gives on one") {
  Pipeline pipeline = line({"t.relay", "t.relay", "t.relay"}, "seen", 20);
  const std::vector<Seen> expected = run(pipeline).seen("seen");
  put(pipeline, "gpu", {"h2"});
  Spread spread(pipeline, two(3 * kMs));
  const Ran ran = spread.run();
  REQUIRE(ran.error.what == "");
  REQUIRE(ran.ok);
  CHECK(ran.seen("seen") == expected);
  CHECK(spread.parcels() > 0);
}

TEST_CASE("7.4: a reader on another node learns that an input has ended, as one on the same node does") {
  Pipeline pipeline(
      "t.count name=short count=3 ! t.ended name=sink log=ended ; "
      "t.count name=long count=6 ! sink. short. ! t.relay name=between ! sink.");
  const Ran expected = run(pipeline);
  CHECK(expected.seen("ended").at(2).values == std::vector<int64_t>{0, 0, 0});
  CHECK(expected.seen("ended").at(3).values == std::vector<int64_t>{1, 0, 1});
  put(pipeline, "gpu", {"sink"});
  Spread nodes(pipeline, two(3 * kMs));
  const Ran ran = nodes.run();
  REQUIRE(ran.error.what == "");
  CHECK(ran.seen("ended") == expected.seen("ended"));
}

TEST_CASE("6a: a detector on another node misses its turns as it does here, and its results come a link later") {
  for (const int64_t latency_ms : {0, 3, 7}) {
    CAPTURE(latency_ms);
    Pipeline p = street(graph::ClockMode::realtime);
    put(p, "gpu", {"detect"});
    Setup setup;
    setup.workers = 4;
    setup.costs_ns = {{"detect", 45 * kMs}, {"overlay", 1 * kMs}, {"writer", 1 * kMs}};
    Spread spread(p, two(latency_ms * kMs), setup);
    const Ran ran = spread.run();
    REQUIRE(ran.error.what == "");
    CHECK(ran.handler("detect").calls == 7); // ticks 0, 6, 12, …, 36
    const std::vector<Seen> show = ran.seen("show");
    REQUIRE(show.size() == 40);
    for (const Seen& seen : show) {
      const auto tick = static_cast<int64_t>(seen.index);
      // The detection of tick 6k is here 45 ms and two ways later.
      const int64_t ticks_later = (45 + 2 * latency_ms + 9) / 10;
      const int64_t newest = tick < ticks_later ? 999 : (tick - ticks_later) / 6 * 6;
      CHECK(seen.values[0] == tick * 1000 + newest);
    }
    CHECK(ran.seen("writer").size() == 40);
  }
}

namespace {

// Each way to put the named handlers on so many nodes, the first node being the sources'. Equal up to names of nodes.
std::vector<std::vector<size_t>> cuts_of(size_t handlers, size_t nodes) {
  std::vector<std::vector<size_t>> all{{}};
  for (size_t h = 0; h < handlers; ++h) {
    std::vector<std::vector<size_t>> longer;
    for (const auto& cut : all)
      for (size_t n = 0; n < nodes; ++n) {
        longer.push_back(cut);
        longer.back().push_back(n);
      }
    all = std::move(longer);
  }
  return all;
}

// Runs the pipeline on two and three nodes, cut in every way; `fixed` stays on the first. Returns how many ways are
// legal; the others are refused for a loop over a link, or for a queue that is too shallow. With `sampled` a run that
// tries a part of the samples (tests/part.h) leaves ways out.
struct Cuts {
  int legal = 0, refused = 0, left_out = 0;
};
Cuts require_alike(const Pipeline& pipeline, const Setup& setup, const std::vector<std::string>& fixed,
                   bool sampled = false) {
  const Ran expected = run(pipeline, setup);
  REQUIRE(expected.error.what == "");
  std::vector<std::string> free;
  for (const graph::Handler& handler : pipeline.graph.handlers)
    if (std::find(fixed.begin(), fixed.end(), handler.name) == fixed.end()) free.push_back(handler.name);
  Cuts cuts;
  for (const size_t count : {2u, 3u}) {
    Nodes nodes;
    nodes.names = {"one", "two", "three"};
    nodes.names.resize(count);
    nodes.link = [](size_t from, size_t to) {
      return Link{static_cast<int64_t>(1 + from * 3 + to) * kMs, 10, {{20 * kMs, 90 * kMs}}};
    };
    for (const std::vector<size_t>& cut : cuts_of(free.size(), count)) {
      if (sampled && !is_tried(cuts.legal + cuts.refused + cuts.left_out)) {
        ++cuts.left_out;
        continue;
      }
      Pipeline p = pipeline;
      for (size_t h = 0; h < free.size(); ++h) put(p, nodes.names[cut[h]], {free[h]});
      for (const std::string& name : fixed) put(p, "one", {name});
      std::string places;
      for (const graph::Handler& handler : p.graph.handlers) places += handler.name + " on " + handler.node + "; ";
      CAPTURE(places);
      try {
        Spread spread(p, nodes, setup);
        const Ran ran = spread.run();
        REQUIRE(ran.error.what == "");
        for (const auto& [name, seen] : expected.all_seen()) {
          CAPTURE(name);
          REQUIRE(ran.seen_if_any(name) == seen);
        }
        ++cuts.legal;
      } catch (const Failure& failure) {
        CAPTURE(failure.what());
        REQUIRE(failure.error().code == code::loop_over_nodes);
        ++cuts.refused;
      }
    }
  }
  return cuts;
}

} // namespace

TEST_CASE("6a: the street under free, cut in every way over two and three nodes, tick by tick as on one") {
  const Cuts cuts = require_alike(street(graph::ClockMode::free), {}, {"video"});
  CHECK(cuts.legal == 16 + 81); // no loop, so every cut is legal
}

TEST_CASE("6b: the tracker's loop, cut in every way that leaves the loop on one node, tick by tick as on one") {
  Pipeline p;
  p.clock(graph::ClockMode::free, 0, 1, 3);
  p.add("video", "t.count", {{"count", "30"}});
  p.add("detect", "t.paced").device = "sim:0";
  p.add("quiet", "t.relay", {{"silent_every", "4"}}).device = "sim:0";
  p.add("tracker", "t.paced");
  p.add("preview", "t.relay");
  p.add("draw", "t.paint", {{"add", "100"}});
  p.add("sink", "t.sink", {{"log", "seen"}});
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
  setup.domains = {"cpu", "sim:0"};
  const Cuts cuts = require_alike(p, setup, {"video"});
  // detect, quiet and tracker are a loop and share a node; the three others are where they like.
  CHECK(cuts.legal == 2 * 8 + 3 * 27);
  CHECK(cuts.refused == 64 + 729 - cuts.legal);
}

TEST_CASE(
    "6c: two cameras with clocks of their own, cut in every way over two and three nodes, tick by tick as on one") {
  Pipeline p;
  graph::Clock left, right;
  left.name = "left";
  right.name = "right";
  left.mode = right.mode = graph::ClockMode::source;
  p.graph.clocks = {left, right};
  p.add("a", "t.count", {{"count", "20"}, {"rate", "100"}}).clock = "left";
  // It stalls for a while and ends first.
  p.add("b", "t.count", {{"count", "7"}, {"rate", "50"}, {"first", "500"}, {"silent_every", "3"}}).clock = "right";
  for (const char* name : {"newest", "oldest", "nearest"}) p.add(name, "t.paced");
  p.add("both", "t.late", {{"after", "4"}}); // answers four frames later, and is joined with its own frames
  p.add("sink", "t.sink", {{"log", "seen"}});
  for (const char* name : {"newest", "oldest", "nearest"}) p.connect("a", std::string(name) + ".in");
  p.connect("b", "newest.extra", graph::Policy::latest);
  graph::Edge& queue = p.connect("b", "oldest.extra", graph::Policy::queue);
  queue.depth = 4;
  queue.full = graph::Full::drop_oldest;
  p.connect("b", "nearest.extra", graph::Policy::align).within_ns = 3 * kMs;
  p.connect("nearest", "both");
  for (const char* name : {"a", "newest", "oldest", "nearest", "both"}) p.connect(name, "sink.in");
  const Cuts cuts = require_alike(p, {}, {"a"}, true); // 793 runs: half the time of this file and its neighbours
  CHECK(cuts.legal + cuts.left_out == 64 + 729);
  CHECK(cuts.legal == part_of(64 + 729));
}

namespace {

Nodes two_with_cut(int64_t begin_ns, int64_t end_ns) {
  Nodes nodes = two(2 * kMs);
  nodes.link = [=](size_t, size_t) { return Link{2 * kMs, 0, {{begin_ns, end_ns}}}; };
  return nodes;
}

} // namespace

TEST_CASE("7.7: under realtime rules a cut link costs ticks of its own edges alone, and each has its cause") {
  Pipeline p = line({"t.relay"}, "seen", 60);
  p.clock(graph::ClockMode::realtime, 100);
  p.add("recorder", "t.sink", {{"log", "recorder"}});
  p.connect("source", "recorder");
  put(p, "gpu", {"h1", "sink"});
  Spread spread(p, two_with_cut(100 * kMs, 400 * kMs), {});
  const Ran ran = spread.run();
  REQUIRE(ran.error.what == "");
  CHECK(ran.report.ticks_late == 0);
  CHECK(ran.seen("recorder").size() == 60); // what is at home loses nothing
  const std::vector<Seen> seen = ran.seen("seen");
  uint64_t left_out = 0;
  for (const EdgeReport& edge : ran.report.edges)
    if (edge.to == "h1.in") left_out = dropped(edge, "link");
  CHECK(seen.size() + left_out == 60);
  CHECK(left_out > 20);
  CHECK(seen.back().index == 59); // the newest are kept
  for (size_t i = 1; i < seen.size(); ++i) CHECK(seen[i].index > seen[i - 1].index);
}

TEST_CASE("7.9: while a node is away its readers go on without it, and with it soon after it is back") {
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 100);
  p.add("camera", "t.count", {{"count", "200"}});
  p.add("detect", "t.relay", {{"add", "0"}});
  p.add("overlay", "t.paced", {{"log", "overlay"}});
  p.add("end", "t.sink", {{"log", "end"}});
  p.add("recorder", "t.sink", {{"log", "recorder"}});
  p.connect("camera", "detect");
  p.connect("camera", "recorder.in");
  p.connect("camera", "overlay.in");
  p.connect("detect", "overlay.extra"); // each tick waits for its own detection
  p.connect("overlay", "end.in");
  put(p, "gpu", {"detect"});
  Nodes nodes = two(2 * kMs);
  nodes.link = [](size_t, size_t) { return Link{2 * kMs, 0, {{500 * kMs, 1500 * kMs}}, 300 * kMs}; };
  Spread spread(p, nodes, {});
  const Ran ran = spread.run();
  REQUIRE(ran.error.what == "");
  CHECK(ran.report.ticks_late == 0);
  CHECK(ran.seen("recorder").size() == 200);
  int64_t with = 0, without = 0;
  for (const Seen& seen : ran.seen("overlay")) {
    const bool has = seen.values[1] != kEmpty;
    if (has) CHECK(seen.values[1] == seen.values[0]);
    ++(has ? with : without);
    // The cut begins at 0.5 s, the node is away from 0.8 s on, and is back at 1.5 s.
    if (seen.index < 48) CHECK(has);
    if (seen.index >= 82 && seen.index < 148) CHECK_FALSE(has);
    if (seen.index >= 160) CHECK(has);
  }
  CHECK(with + without > 160); // between 0.5 s and 0.8 s the overlay waited, and its feed left ticks out
  CHECK(without > 60);
  uint64_t away = 0;
  for (const EdgeReport& edge : ran.report.edges)
    if (edge.to == "detect.in") away = dropped(edge, "away");
  CHECK(away > 60);
}

namespace {

constexpr int64_t kSecond = 1'000 * kMs;

struct Row {
  std::vector<std::string> names; // the camera is on the first, and each has a handler
  bool comes_back = false;        // the last handler's results are read on the first node; else on the last
  graph::Delivery delivery{};
  int64_t count = 0; // of the camera, at 100/s
};

Pipeline in_a_row(const Row& row) {
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 100);
  p.add("h0", "t.count", {{"count", std::to_string(row.count)}});
  p.add("recorder", "t.sink", {{"log", "recorder"}});
  p.connect("h0", "recorder.in");
  put(p, row.names[0], {"h0", "recorder"});
  std::string last = "h0";
  for (size_t n = 1; n < row.names.size(); ++n) {
    const std::string name = "h" + std::to_string(n);
    p.add(name, "t.relay", {{"add", "0"}});
    p.connect(last, name).delivery = row.delivery;
    put(p, row.names[n], {name});
    last = name;
  }
  const std::string& reads = row.comes_back ? row.names.front() : row.names.back();
  p.add("overlay", "t.paced", {{"log", "overlay"}}); // each tick waits for its own result of the row
  p.connect("h0", "overlay.in").delivery = row.delivery;
  p.connect(last, "overlay.extra").delivery = row.delivery;
  p.add("end", "t.sink", {{"log", "end"}});
  p.connect(last, "end.in").delivery = row.delivery;
  p.add("shown", "t.sink", {{"log", "shown"}});
  p.connect("overlay", "shown.in");
  put(p, reads, {"overlay", "end", "shown"});
  return p;
}

// All that a node of a row may die of and how the run may end: each with three and four nodes.
template <class Check>
void each_death_in_a_row(Check check) {
  const std::vector<std::string> all = {"edge", "gpu", "cloud", "store"};
  for (const size_t count : {3u, 4u})
    for (size_t victim = 1; victim < count; ++victim)
      for (const bool comes_back : {true, false})
        for (const graph::Delivery delivery : {graph::Delivery::live, graph::Delivery::reliable})
          for (const int64_t told_after_ns : {int64_t{0}, 3 * kSecond}) { // it leaves in order, or is killed
            CAPTURE(count);
            CAPTURE(victim);
            CAPTURE(comes_back);
            CAPTURE(static_cast<int>(delivery));
            CAPTURE(told_after_ns);
            Nodes nodes;
            nodes.names.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(count));
            nodes.link = [](size_t, size_t) { return Link{2 * kMs, 0, {}}; };
            nodes.death = {victim, 500 * kMs, told_after_ns};
            check(Row{nodes.names, comes_back, delivery, 0}, nodes);
          }
}

} // namespace

TEST_CASE("7.9: any node of a row but the home may die: the others go on, and end when the source does") {
  for (const int64_t count : {100, 500}) // it ends before they know that the node is dead, and long after
    each_death_in_a_row([&](Row row, const Nodes& nodes) {
      CAPTURE(count);
      row.count = count;
      Spread spread(in_a_row(row), nodes);
      const Ran ran = spread.run();
      REQUIRE(ran.error.what == "");
      CHECK(ran.seen("recorder").size() == static_cast<size_t>(count));
      const bool is_read_by_dead = !row.comes_back && nodes.death->node + 1 == row.names.size();
      if (is_read_by_dead) return;
      // A reader of the camera's own ticks beside the row's goes on with them, soon after the death is known.
      const int64_t known_tick = (nodes.death->at_ns + nodes.death->told_after_ns) / (10 * kMs) + 10;
      std::vector<bool> seen_after(static_cast<size_t>(count));
      for (const Seen& seen : ran.seen("overlay")) {
        seen_after[seen.index] = true;
        if (static_cast<int64_t>(seen.index) > known_tick) CHECK(seen.values[1] == kEmpty);
      }
      for (int64_t tick = known_tick; tick < count; ++tick) {
        CAPTURE(tick);
        CHECK(seen_after[static_cast<size_t>(tick)]);
      }
    });
}

TEST_CASE("7.11: after the death of a node of a row a first signal ends the others, though the source goes on") {
  each_death_in_a_row([&](Row row, Nodes nodes) {
    row.count = 1'000'000;
    nodes.stop_at_ns = 5 * kSecond;
    Spread spread(in_a_row(row), nodes);
    const Ran ran = spread.run();
    REQUIRE(ran.error.what == "");
    CHECK(spread.now_ns() < 6 * kSecond);
    CHECK(ran.seen("recorder").size() <= 502);
  });
}

TEST_CASE("7.9: two clocks whose ways cross at a node that dies both end, each on the other's home") {
  for (const bool ends_together : {true, false}) {
    CAPTURE(ends_together);
    Pipeline p;
    graph::Clock left, right;
    left.name = "left";
    right.name = "right";
    left.mode = right.mode = graph::ClockMode::realtime;
    left.rate = right.rate = {100, 1};
    p.graph.clocks = {left, right};
    p.add("a", "t.count", {{"count", "200"}}).clock = "left";
    p.add("b", "t.count", {{"count", ends_together ? "200" : "300"}}).clock = "right";
    for (const char* name : {"a_there", "b_there"}) p.add(name, "t.relay");
    p.add("a_end", "t.sink", {{"log", "a"}});
    p.add("b_end", "t.sink", {{"log", "b"}});
    p.connect("a", "a_there");
    p.connect("a_there", "a_end");
    p.connect("b", "b_there");
    p.connect("b_there", "b_end");
    put(p, "edge", {"a", "b_end"});
    put(p, "gpu", {"a_there", "b_there"});
    put(p, "cloud", {"b", "a_end"});
    Nodes nodes;
    nodes.names = {"edge", "gpu", "cloud"};
    nodes.link = [](size_t, size_t) { return Link{2 * kMs, 0, {}}; };
    nodes.death = {1, 500 * kMs, 3 * kSecond};
    Spread spread(p, nodes);
    const Ran ran = spread.run();
    REQUIRE(ran.error.what == "");
    CHECK(ran.seen("a").size() > 40);
    CHECK(ran.seen("b").size() > 40);
  }
}

TEST_CASE(
    "7.9: what reads a node that waits for one that is away goes on without both, and with both once it is back") {
  Row row{{"edge", "gpu", "cloud", "store"}, true, graph::Delivery::live, 300};
  Nodes nodes;
  nodes.names = row.names;
  nodes.link = [](size_t from, size_t to) { // gpu and cloud do not hear each other for a while
    const bool is_cut = from + to == 3 && from != 0 && to != 0;
    return Link{2 * kMs, 0,
                is_cut ? std::vector<std::pair<int64_t, int64_t>>{{500 * kMs, 1500 * kMs}}
                       : std::vector<std::pair<int64_t, int64_t>>{},
                300 * kMs};
  };
  Spread spread(in_a_row(row), nodes);
  const Ran ran = spread.run();
  REQUIRE(ran.error.what == "");
  CHECK(ran.seen("recorder").size() == 300);
  int64_t without = 0;
  for (const Seen& seen : ran.seen("overlay")) {
    const bool has = seen.values[1] != kEmpty;
    if (has) CHECK(seen.values[1] == seen.values[0]);
    without += !has;
    if (seen.index < 45) CHECK(has);
    if (seen.index >= 85 && seen.index < 145) CHECK_FALSE(has);
    if (seen.index >= 170) CHECK(has);
  }
  CHECK(without > 60);
}
