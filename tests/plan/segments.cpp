// Steps cut into segments, and segments given to threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/unfold.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "planned.h"
#include "tests/milliseconds.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Pipeline line(const std::vector<std::string>& types, graph::ClockMode mode = graph::ClockMode::free, int64_t rate = 0) {
  Pipeline p;
  p.clock(mode, rate);
  p.add("source", "t.count");
  for (const std::string& type : types) {
    const std::string name = "h" + std::to_string(p.graph.handlers.size());
    p.connect(p.graph.handlers.back().name, name);
    p.add(name, type);
  }
  return p;
}

plan::Options costs(const std::map<std::string, int64_t>& ns) {
  plan::Options options;
  options.costs_ns = ns;
  options.costs_ns["source"] = 1;
  return options;
}

// Streams of two paces each, with work of so many ms on both sides of the queue.
Planned streams_of(const std::map<std::string, int64_t>& ms, uint32_t workers) {
  std::string items;
  plan::Options options;
  for (const auto& [name, work] : ms) {
    items += (items.empty() ? "" : ", ") + name + ": {}";
    options.costs_ns["source@" + name] = 1;
    for (const char* handler : {"first@", "second@"}) options.costs_ns[handler + name] = work * kMs;
  }
  Pipeline p;
  p.graph = graph::unfold(graph::parse_yaml("version: 1\nstreams: { cameras: { items: { " + items + R"( } } }
clocks: { cameras: { mode: free } }
handlers:
  source: { type: t.count, for_each: cameras }
  first:  { type: t.relay, for_each: cameras, input: source }
  second: { type: t.relay, for_each: cameras, input: { from: first, policy: queue, depth: 2 } }
)",
                                            "streams.yaml"));
  return Planned(p, machine_of(workers), options);
}

// By clock: the workers that its segments are shared out to.
std::map<std::string, std::set<uint32_t>> homes_of(const plan::Plan& plan) {
  std::map<std::string, std::set<uint32_t>> homes;
  for (const plan::Segment& segment : plan.segments)
    homes[plan.clocks[plan.paces[segment.pace].clock].name].insert(segment.home);
  return homes;
}

} // namespace

TEST_CASE("5.2: the segments of a stream, of all its paces, have one home") {
  std::map<std::string, int64_t> ms;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) ms[name] = 1;
  const plan::Plan plan = streams_of(ms, 3).compiled();
  CHECK(plan.paces.size() > plan.clocks.size());
  std::map<uint32_t, size_t> streams;
  for (const auto& [stream, homes] : homes_of(plan)) {
    CHECK_MESSAGE(homes.size() == 1, stream);
    ++streams[*homes.begin()];
  }
  CHECK(streams == std::map<uint32_t, size_t>{{0, 2}, {1, 2}, {2, 2}});
}

TEST_CASE("5.2: a stream with more work than a worker's share of all work is shared out, beside others that are not") {
  const plan::Plan plan = streams_of({{"large", 9}, {"s1", 1}, {"s2", 1}}, 2).compiled();
  std::map<std::string, std::set<uint32_t>> homes = homes_of(plan);
  CHECK(homes["large"] == std::set<uint32_t>{0, 1});
  CHECK(homes["s1"].size() == 1);
  CHECK(homes["s2"].size() == 1);
  CHECK(homes["s1"] != homes["s2"]);
}

TEST_CASE("5.2: one thread gets one segment") {
  CHECK(Planned(line({"t.relay", "t.relay", "t.relay"}), machine_of(1), costs({{"h1", 9 * kMs}})).segments() ==
        Names{"source h1 h2 h3"});
}

TEST_CASE("5.2: a segment is cut where its time would exceed four fifths of the period") {
  // 50/s: a period of 20 ms, of which a segment may fill 16.
  const Pipeline p = line({"t.relay", "t.relay", "t.relay", "t.relay"}, graph::ClockMode::realtime, 50);
  const plan::Machine machine = machine_of(4);
  const auto each = [&](int64_t ns) {
    return Planned(p, machine, costs({{"h1", ns}, {"h2", ns}, {"h3", ns}, {"h4", ns}})).segments();
  };
  CHECK(each(3 * kMs) == Names{"source h1 h2 h3 h4"});
  CHECK(each(6 * kMs) == Names{"source h1 h2", "h3 h4"});
  CHECK(each(8 * kMs) == Names{"source h1", "h2 h3", "h4"});
  CHECK(each(15 * kMs) == Names{"source h1", "h2", "h3", "h4"});
}

TEST_CASE("5.2: without a period the work is shared out among the threads") {
  const Pipeline p = line({"t.relay", "t.relay", "t.relay", "t.relay"});
  const plan::Options even = costs({{"h1", kMs}, {"h2", kMs}, {"h3", kMs}, {"h4", kMs}});
  CHECK(Planned(p, machine_of(2), even).segments() == Names{"source h1", "h2 h3", "h4"});
  CHECK(Planned(p, machine_of(4), even).segments() == Names{"source", "h1", "h2", "h3", "h4"});
}

TEST_CASE("5.2: handlers so short that a hand-over would cost more stay together") {
  const std::map<std::string, int64_t> ns = {{"h1", 100}, {"h2", 100}, {"h3", 100}};
  CHECK(Planned(line({"t.relay", "t.relay", "t.relay"}), machine_of(8), costs(ns)).segments() ==
        Names{"source h1 h2 h3"});
}

TEST_CASE("5.2: a cost that was given counts, else the handler's own hint, else a guess") {
  const Pipeline p = line({"p.hint", "p.hint"}, graph::ClockMode::realtime, 100); // 8 ms of 10 a segment
  CHECK(Planned(p, machine_of(2)).segments() == Names{"source h1", "h2"});        // 5 ms each
  CHECK(Planned(p, machine_of(2)).cost_ns("h1") == 5 * kMs);
  CHECK(Planned(p, machine_of(2), costs({{"h1", kMs}, {"h2", kMs}})).segments() == Names{"source h1 h2"});
}

TEST_CASE("5.2: a blocking handler begins a segment of its own, on a thread of its own") {
  const Planned planned(line({"t.relay", "p.blocking", "t.relay"}), machine_of(2));
  CHECK(planned.segments().size() >= 3);
  const SegmentView segment = planned.segment("h2");
  CHECK(segment.steps.size() == 1);
  CHECK(segment.blocking);
  CHECK(segment.pinned);
  CHECK(!segment.by_a_worker);
  CHECK(planned.threads() == planned.workers() + 1);
}

TEST_CASE("5.2: handlers that name one thread share it, and heavy ones stand alone") {
  Pipeline p = line({"t.relay"});
  for (const char* name : {"a", "b"}) {
    p.add(name, "p.named");
    p.connect("h1", name);
  }
  const Planned planned(p, machine_of(2));
  CHECK(planned.segment("a").thread == planned.segment("b").thread);
  CHECK_FALSE(planned.segment("a").by_a_worker);
  CHECK(planned.threads() == 3);
  const Planned heavy(line({"t.relay", "p.heavy", "t.relay"}), machine_of(1));
  CHECK(heavy.segment("h2").steps.size() == 1);
}

TEST_CASE(
    "5.2, 2.4: concurrency makes a lane a segment for each instance, and no more where ticks depend on each other") {
  Pipeline p = line({"t.stateless"});
  p.graph.handlers[1].concurrency = 3;
  const Planned planned(p, machine_of(4));
  std::vector<uint32_t> lanes;
  for (const SegmentView& segment : planned.all_segments())
    if (segment.lanes == 3) lanes.push_back(segment.lane);
  CHECK(lanes == std::vector<uint32_t>{0, 1, 2});
  p.graph.edges[0].delay = 1; // the last value is repeated: who sees every third tick cannot know it
  p.graph.edges[0].initial_empty = true;
  const Planned whole(p, machine_of(4));
  CHECK(whole.instances("h1") == 1);
  CHECK(whole.has_note("h1 runs as one instance"));
}

TEST_CASE("4.3: one thread submits to a device, whatever runs there") {
  Pipeline p = line({"t.relay", "t.relay", "t.relay"});
  for (size_t h = 1; h < 4; ++h) p.graph.handlers[h].device = h == 2 ? "cpu" : "sim:0";
  const Planned planned(p, machine_of(3, {"cpu", "sim:0"}));
  std::vector<uint32_t> homes;
  for (const SegmentView& segment : planned.all_segments())
    if (segment.domain != "cpu") {
      CHECK(segment.pinned);
      homes.push_back(segment.thread);
    }
  REQUIRE(homes.size() > 1);
  CHECK(std::count(homes.begin(), homes.end(), homes[0]) == static_cast<int64_t>(homes.size()));
}

TEST_CASE("4.3: a body that keeps the host busy is submitted by a thread of its own, unless it is recorded") {
  const plan::Machine machine = machine_of(2, {"cpu", "sim:0"});
  const auto on_device = [&](const std::string& type) {
    Pipeline p = line({"t.relay", type, "t.relay", type});
    for (size_t h = 1; h < 5; ++h) p.graph.handlers[h].device = "sim:0";
    return Planned(p, machine);
  };
  const Planned heavy = on_device("p.heavy");
  std::vector<uint32_t> others;
  for (const SegmentView& segment : heavy.all_segments())
    if (segment.domain != "cpu" && !segment.heavy) others.push_back(segment.thread);
  REQUIRE_FALSE(others.empty());
  CHECK(std::count(others.begin(), others.end(), others[0]) == static_cast<int64_t>(others.size()));
  CHECK(heavy.segment("h2").heavy);
  CHECK(heavy.segment("h2").pinned);
  CHECK(std::set<uint32_t>{others[0], heavy.segment("h2").thread, heavy.segment("h4").thread}.size() == 3);
  CHECK(heavy.threads() == heavy.workers() + 3);
  CHECK(heavy.text().find("sim:0, a thread of its own that submits to it\n    h2 ") != std::string::npos);
  CHECK_FALSE(heavy.has_note("keeps the host busy"));
  const Planned recorded = on_device("p.heavyrecorded");
  CHECK_FALSE(recorded.segment("h2").heavy);
  CHECK(recorded.threads() == recorded.workers() + 1);
}

TEST_CASE("4.3: bodies that keep the host busy and get no thread of their own any more are noted") {
  const auto with_heavy = [&](size_t count) {
    Pipeline p = line(std::vector<std::string>(count, "p.heavy"));
    for (size_t h = 1; h <= count; ++h) p.graph.handlers[h].device = "sim:0";
    return Planned(p, machine_of(2, {"cpu", "sim:0"}));
  };
  CHECK_FALSE(with_heavy(32).has_note("the host busy"));
  const Planned one_more = with_heavy(33);
  CHECK(
      one_more.has_note("h33 keeps the host busy on the thread that submits all else to sim:0: 32 others there have"));
  CHECK_FALSE(one_more.segment("h33").heavy);
  CHECK(with_heavy(34).has_note("h33, h34 keep the host busy"));
}

TEST_CASE("5.2: a handler that answers later is cut from those that come after it") {
  const Planned alone(line({"t.late", "t.relay"}), machine_of(1));
  CHECK(alone.segments() == Names{"source", "h1", "h2"}); // the first two are of two paces
  CHECK(alone.level("h2") == 8);
  Pipeline p = line({"t.late", "t.join"});
  p.connect("source", "h2.in");
  const Planned rejoined(p, machine_of(1));
  CHECK(rejoined.segments() == Names{"source h1", "h2"});
  CHECK(rejoined.level("h2") == 8);
}
