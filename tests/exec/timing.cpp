// Rates, beats and lateness on simulated workers, in virtual time: every number here is exact and the same in each run.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <map>
#include <set>

#include "spread.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// The infos of the ticks that a handler saw.
std::vector<mr_tick_info> tick_infos;

struct RecordsTickInfo final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick& tick, Cpu&) { tick_infos.push_back(*tick.raw().info); }
};

// The order in which handlers drained and stopped.
std::vector<std::string> farewells;

struct Farewell final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<std::string> name{*this, "name", "", "what it signs with"};
  int64_t calls = 0;
  void process(Tick& tick, Cpu&) {
    ++calls;
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = 1;
  }
  void drain() override { farewells.push_back(*name + " drains after " + std::to_string(calls)); }
  void stop() override { farewells.push_back(*name + " stops"); }
};

const mr_plugin& timing_plugin() {
  static const mr_handler_type types[] = {detail::Type<RecordsTickInfo>::table("time.told", "", ""),
                                          detail::Type<Farewell>::table("time.farewell", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "timing", "1", pointers, 2, 0};
  return plugin;
}

Setup timing_setup(uint32_t workers) {
  Setup setup;
  setup.workers = workers;
  setup.virtual_time = true;
  setup.more = &timing_plugin();
  return setup;
}

uint64_t dropped(const Report& report, const std::string& to, const std::string& cause) {
  for (const EdgeReport& edge : report.edges)
    if (edge.to == to) return edge.dropped.contains(cause) ? edge.dropped.at(cause) : 0;
  throw std::invalid_argument("no edge to " + to);
}

} // namespace

TEST_CASE("5.2: three handlers of 8 ms keep 60 Hz on two workers, though one tick takes longer than a period") {
  Pipeline p = line({"t.relay", "t.relay", "t.relay"}, "sixty", 600);
  p.clock(graph::ClockMode::realtime, 60);
  Setup setup = timing_setup(2);
  setup.costs_ns = {{"source", 1}, {"h1", 8 * kMs}, {"h2", 8 * kMs}, {"h3", 8 * kMs}, {"sink", 1}};
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  CHECK(result.report.ticks_run == 600);
  CHECK(result.report.ticks_late == 0);
  CHECK(result.report.ticks_skipped == 0);
  CHECK(result.seen("sixty").size() == 600);
  CHECK(result.report.latency_p99_us >= 24'000);
  CHECK(result.report.latency_p99_us < 2 * 16'667 * 1.1); // the histogram's buckets are this wide
}

TEST_CASE("5.2: one worker cannot keep what takes longer than a period, and says so") {
  Pipeline p = line({"t.relay", "t.relay", "t.relay"}, "slow", 60);
  p.clock(graph::ClockMode::realtime, 60);
  Setup setup = timing_setup(1);
  setup.costs_ns = {{"h1", 8 * kMs}, {"h2", 8 * kMs}, {"h3", 8 * kMs}};
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  CHECK(result.report.ticks_run == 60);
  CHECK(result.report.ticks_late + result.report.ticks_skipped > 20);
}

TEST_CASE("2.4: four instances of a stateless handler on four workers reach four times the rate of one") {
  const auto seconds = [](uint32_t instances) {
    Pipeline p = line({"t.stateless"}, "lanes", 100);
    p.graph.handlers[1].concurrency = instances;
    Setup setup = timing_setup(4);
    setup.costs_ns = {{"h1", 70 * kMs}};
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    const std::vector<int64_t> seen = values(result.seen("lanes"));
    for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == static_cast<int64_t>(i));
    CHECK(seen.size() == 100);
    return result.report.duration_s;
  };
  CHECK(seconds(1) == doctest::Approx(7.0));
  CHECK(seconds(4) == doctest::Approx(1.75));
}

TEST_CASE("1.2: beats never drift: beat n of 30000/1001 a second is due at n times the period, over 100,000 ticks") {
  Pipeline p = line({"time.told"}, "unused", 100'000);
  p.graph.handlers.pop_back();
  p.graph.edges.pop_back();
  p.clock(graph::ClockMode::realtime, 30'000, 1001);
  tick_infos.clear();
  const Ran result = run(p, timing_setup(1));
  REQUIRE(result.ok);
  CHECK(result.report.ticks_late == 0);
  CHECK(result.report.ticks_skipped == 0);
  REQUIRE(tick_infos.size() == 100'000);
  int64_t wrong = 0;
  for (size_t n = 0; n < tick_infos.size(); ++n)
    wrong += tick_infos[n].media_time_ns != static_cast<int64_t>(n) * 1001 * 1'000'000'000 / 30'000;
  CHECK(wrong == 0);
  CHECK(result.report.duration_s == doctest::Approx(100'000 * 1001 / 30'000.0));
}

TEST_CASE("1.1: a tick has clock, epoch, index, media time, deadline and a trace id of its own everywhere") {
  Pipeline p;
  for (const std::string clock : {"left", "right"}) {
    p.clock(graph::ClockMode::realtime, 100);
    p.graph.clocks.back().name = clock;
    p.add("source_" + clock, "t.count", {{"count", "50"}}).clock = clock;
    p.add("relay_" + clock, "t.relay");
    p.add("told_" + clock, "time.told");
    p.connect("source_" + clock, "relay_" + clock);
    p.connect("relay_" + clock, "told_" + clock);
  }
  tick_infos.clear();
  const Ran ran = run(p, timing_setup(2));
  REQUIRE(ran.ok);
  REQUIRE(tick_infos.size() == 100);
  std::map<uint32_t, uint64_t> ticks; // by clock
  std::set<uint64_t> trace_ids;
  for (const mr_tick_info& tick : tick_infos) {
    CHECK(tick.index == ticks[tick.clock]++); // without gaps, so the epoch is the same
    CHECK(tick.epoch == tick_infos[0].epoch);
    CHECK(tick.media_time_ns == static_cast<int64_t>(tick.index) * 10 * kMs);
    CHECK(tick.deadline_ns == tick.media_time_ns + 10 * kMs); // it began at time 0
    trace_ids.insert(tick.trace_id);
  }
  CHECK(ticks.size() == 2);
  CHECK(trace_ids.size() == tick_infos.size());
}

TEST_CASE("7.12: a deadline is later by half a round trip on each node that a tick comes to") {
  Pipeline p = line({"t.relay", "time.told"}, "unused", 20);
  p.graph.handlers.pop_back();
  p.graph.edges.pop_back();
  p.clock(graph::ClockMode::realtime, 100);
  p.graph.handlers[1].node = "gpu";
  p.graph.handlers[2].node = "cloud";
  Nodes nodes;
  nodes.names = {"home", "gpu", "cloud"};
  nodes.link = [](size_t, size_t) { return Link{2 * kMs, 0, {}}; };
  Setup setup = timing_setup(1);
  setup.round_trip_ns = 4 * kMs;
  tick_infos.clear();
  const Ran ran = Spread(p, nodes, setup).run();
  REQUIRE(ran.error.what == "");
  REQUIRE(tick_infos.size() == 20);
  for (const mr_tick_info& tick : tick_infos) CHECK(tick.deadline_ns == tick.media_time_ns + (10 + 2 + 2) * kMs);
}

TEST_CASE("2.5: under realtime latest is the newest that is done, not the newest that was begun") {
  Pipeline p(
      "t.count name=source count=12 ! t.relay name=slow ; source. ! t.paced name=paced ! t.sink name=sink "
      "log=newest ; slow. ! paced.extra policy=latest");
  p.clock(graph::ClockMode::realtime, 100);
  Setup setup = timing_setup(3);
  setup.costs_ns = {{"slow", 25 * kMs}};
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  // slow begins at ticks 0, 3, 6, 9 (0, 30, 60, 90 ms) and is done 25 ms later: first seen at ticks 3, 6, 9.
  CHECK(values(result.seen("newest")) ==
        std::vector<int64_t>{999, 1999, 2999, 3000, 4000, 5000, 6003, 7003, 8003, 9006, 10006, 11006});
  CHECK(dropped(result.report, "slow.in", "busy") == 8);
}

TEST_CASE("4.1: a device's output counts for latest and busy when it is done, not when it is issued") {
  Pipeline p(
      "t.count name=source count=10 ! t.relay name=slow device=sim:0 ; source. ! t.paced name=paced device=cpu ! "
      "t.sink name=sink log=issued ; slow. ! paced.extra policy=latest");
  p.clock(graph::ClockMode::realtime, 100);
  Setup setup = timing_setup(3);
  setup.domains = {"cpu", "sim:0"};
  setup.costs_ns = {{"slow", 25 * kMs}};
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  const std::vector<int64_t> seen = values(result.seen("issued"));
  REQUIRE(seen.size() == 10);
  for (int64_t tick = 0; tick < 3; ++tick) CHECK(seen[static_cast<size_t>(tick)] == tick * 1000 + 999);
  CHECK(seen[3] == 3000);
  CHECK(seen[6] == 6003);
  CHECK(dropped(result.report, "slow.in", "busy") == 6); // begins at ticks 0, 3, 6, 9
}

TEST_CASE("2.3: under realtime a queue that blocks makes beats late and loses nothing of what was admitted") {
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 100);
  p.add("source", "t.count", {{"count", "40"}});
  p.add("writer", "t.sink", {{"log", "block"}});
  graph::Edge& queue = p.connect("source", "writer", graph::Policy::queue);
  queue.depth = 2;
  queue.full = graph::Full::block;
  Setup setup = timing_setup(2);
  setup.costs_ns = {{"writer", 25 * kMs}};
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  const std::vector<Seen> log = result.seen("block");
  CHECK(log.size() == 40);
  for (size_t i = 0; i < log.size(); ++i) CHECK(log[i].index == i);
  CHECK(result.report.ticks_run == 40);
  CHECK(result.report.ticks_late > 40); // one written in 25 ms, a beat every 10
}

TEST_CASE("2.3: under realtime drop_newest keeps what waits and turns away what comes") {
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 100);
  p.add("source", "t.count", {{"count", "40"}});
  p.add("writer", "t.sink", {{"log", "newest"}});
  graph::Edge& queue = p.connect("source", "writer", graph::Policy::queue);
  queue.depth = 2;
  queue.full = graph::Full::drop_newest;
  Setup setup = timing_setup(2);
  setup.costs_ns = {{"writer", 25 * kMs}};
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  CHECK(result.report.ticks_late == 0);
  const std::vector<Seen> log = result.seen("newest");
  CHECK(log.size() + dropped(result.report, "writer.in[0]", "queue_full") == 40);
  REQUIRE(log.size() >= 3);
  for (size_t i = 0; i < 3; ++i) CHECK(log[i].index == i); // one in work, two waiting
  CHECK(log.back().index < 39);
}

TEST_CASE("2.8: a run ends after ticks_max ticks, or once its duration is over, and every sink sees all of them") {
  Pipeline p = line({"t.relay"}, "end", 0);
  p.clock(graph::ClockMode::realtime, 100);
  Setup setup = timing_setup(2);
  setup.options.ticks_max = 7;
  const Ran counted = run(p, setup);
  CHECK(counted.report.ticks_run == 7);
  CHECK(counted.seen("end").size() == 7);
  setup.options.ticks_max = 0;
  setup.options.duration_ns = 95 * kMs;
  const Ran timed = run(p, setup);
  CHECK(timed.report.ticks_run == 10); // beats at 0, 10, … 90 ms
  CHECK(timed.seen("end").size() == 10);
}

TEST_CASE("2.8: handlers drain in the order of the data, each after its last call, and stop when all have drained") {
  Pipeline p = line({"time.farewell", "time.farewell"}, "drain", 5);
  p.graph.handlers[1].params = {{"name", "first", {}, {}}};
  p.graph.handlers[2].params = {{"name", "second", {}, {}}};
  for (const uint32_t workers : {1u, 3u}) {
    farewells.clear();
    const Ran ran = run(p, timing_setup(workers));
    REQUIRE(ran.ok);
    CHECK(farewells ==
          std::vector<std::string>{"first drains after 5", "second drains after 5", "first stops", "second stops"});
  }
}

TEST_CASE("1.2: in virtual time a run is the same each time, to the nanosecond") {
  const auto once = [] {
    Pipeline p = line({"t.relay", "t.relay"}, "same", 200);
    p.clock(graph::ClockMode::realtime, 100);
    Setup setup = timing_setup(3);
    setup.options.cost_ns = [](const std::string& name, uint64_t index) {
      return name == "source" ? 0 : static_cast<int64_t>((index * 7919 + name.size() * 31) % 23) * kMs;
    };
    setup.costs_ns = {{"h1", 7 * kMs}, {"h2", 7 * kMs}};
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    return std::make_tuple(result.seen("same"), result.report.ticks_late, result.report.ticks_skipped,
                           result.report.latency_max_us);
  };
  const auto first = once();
  CHECK(std::get<1>(first) > 0);
  CHECK(once() == first);
}

TEST_CASE(
    "4.6: copies up and down and compute of 10 ms each overlap: with three ticks in flight 95 a second at least") {
  const auto ticks_per_s = [](uint32_t in_flight) {
    constexpr uint64_t kTicks = 100;
    Pipeline p = line({"t.relay"}, "overlap", kTicks);
    p.graph.handlers[1].device = "sim:0";
    p.clock(graph::ClockMode::free, 0, 1, in_flight);
    Setup setup = timing_setup(2);
    setup.domains = {"cpu", "sim:0"};
    setup.hops = {copy_hop("cpu", "sim:0", 10'000), copy_hop("sim:0", "cpu", 10'000)};
    setup.costs_ns = {{"h1", 10 * kMs}};
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    CHECK(result.seen("overlap").size() == kTicks);
    return static_cast<double>(kTicks) / result.report.duration_s;
  };
  CHECK(ticks_per_s(1) == doctest::Approx(100 / 3.0).epsilon(0.01)); // one after the other
  CHECK(ticks_per_s(2) == doctest::Approx(200 / 3.0).epsilon(0.02));
  CHECK(ticks_per_s(3) >= 95);
  CHECK(ticks_per_s(4) >= 95);
  CHECK(ticks_per_s(4) <= 100); // no engine does two things at once
}
