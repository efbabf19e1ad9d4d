// Runs of several nodes joined by real sessions over a simulated network (semantics.md 7.13): outputs are those of one
// machine, whatever the network does, and no parcel is lost or comes twice.
#include "embed/link_ends.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "exec/run.h"
#include "linked_nodes.h"
#include "observe/error_codes.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"
#include "tests/chance.h"

namespace millrace::test {
namespace {

using net::kMillisecond, net::kSecond;

// Puts the named handlers on the node; the others are at home.
void put(Pipeline& pipeline, const std::string& node, const std::vector<std::string>& handlers) {
  for (graph::Handler& handler : pipeline.graph.handlers) {
    if (std::find(handlers.begin(), handlers.end(), handler.name) != handlers.end()) handler.node = node;
    if (handler.node.empty()) handler.node = "home";
  }
}

// Slow, cut into slices of a few bytes, and never the same twice.
Wires bad_wires(uint64_t seed) {
  Wires wires;
  wires.seed = seed;
  wires.line = [](net::sim::Line& line, Random& random) {
    line.latency_ns = random.spread(20'000, 20 * kMillisecond);
    line.jitter_ns = chance(random, 500) ? 0 : random.between(0, 2 * line.latency_ns);
    line.bytes_per_second = chance(random, 500) ? 0 : static_cast<uint64_t>(random.spread(50'000, 10'000'000));
    constexpr size_t kSlices[] = {0, 1, 7, 100};
    line.slice_most = kSlices[random.below(4)];
  };
  wires.wake_ns_most = 100'000;
  wires.faults = 12;
  wires.faults_ns = kSecond;
  return wires;
}

void check_the_same(const Ran& expected, const Ran& ran, const LinkedNodes& nodes) {
  REQUIRE(nodes.broken() == "");
  REQUIRE(ran.error.what == "");
  REQUIRE(ran.ok);
  for (const auto& [name, seen] : expected.all_seen()) CHECK(ran.seen_if_any(name) == seen);
}

std::vector<Seen> before_tick(uint64_t index, std::vector<Seen> seen) {
  std::erase_if(seen, [&](const Seen& one) { return one.index >= index; });
  return seen;
}

} // namespace

TEST_CASE("7.13: a line whose middle is on another node gives what it gives on one, over a link") {
  Pipeline pipeline = line({"t.relay", "t.relay", "t.relay"}, "seen", 50);
  const Ran expected = run(pipeline);
  put(pipeline, "gpu", {"h2"});
  LinkedNodes nodes(pipeline, {"home", "gpu"}, Wires{});
  check_the_same(expected, nodes.run(), nodes);
  CHECK(nodes.parcels() == 100);
}

TEST_CASE("7.13: two nodes over a bad network give what one gives, and the ends of runs allocate nothing") {
  Pipeline pipeline(
      "t.count name=source count=200 size=40 ! t.relay name=a add=1000 ! t.relay name=b log=b ! "
      "t.join name=c ! t.sink name=sink log=seen source. ! c.");
  const Ran expected = run(pipeline);
  put(pipeline, "gpu", {"a", "b"});
  uint64_t cuts = 0, came_back = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed ", seed);
    LinkedNodes nodes(pipeline, {"home", "gpu"}, bad_wires(seed));
    check_the_same(expected, nodes.run(), nodes);
    CHECK(nodes.parcels() == 400);
    CHECK(nodes.allocations() == 0);
    cuts += nodes.cuts();
    came_back += nodes.sessions_came_back();
  }
  CHECK(cuts > 20);
  CHECK(came_back > 10);
}

TEST_CASE("7.13: three nodes in a ring of links give what one gives, with two data connections each") {
  // home → gpu → cloud → home, and each node also reads what the one before it has read.
  Pipeline pipeline(
      "t.count name=source count=120 size=20 ! t.relay name=on_gpu add=7 ! t.join name=on_cloud ! t.join name=joined ! "
      "t.sink name=sink log=seen source. ! on_cloud. on_gpu. ! joined. source. ! t.late name=late after=2 ! joined. "
      "joined. ! t.sink name=far log=far");
  const Ran expected = run(pipeline);
  put(pipeline, "gpu", {"on_gpu", "late"});
  put(pipeline, "cloud", {"on_cloud", "far"});
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed ", seed);
    Wires wires = bad_wires(seed);
    wires.data_lanes = 2;
    wires.faults = 24;
    LinkedNodes nodes(pipeline, {"home", "gpu", "cloud"}, wires);
    check_the_same(expected, nodes.run(), nodes);
    CHECK(nodes.allocations() == 0);
  }
}

TEST_CASE("7.6: large values go from block to block: what a session copies does not grow with them") {
  uint64_t copied[2] = {};
  for (const bool large : {false, true}) {
    Pipeline pipeline("t.count name=source count=30 size=" + std::to_string(large ? 400'000 : 20'000) +
                      " ! t.relay name=far ! t.sink name=sink log=seen");
    const Ran expected = run(pipeline);
    put(pipeline, "gpu", {"far"});
    Wires wires;
    wires.line = [](net::sim::Line& line, Random&) { line.bytes_per_second = 1'000'000'000; };
    LinkedNodes nodes(pipeline, {"home", "gpu"}, wires);
    check_the_same(expected, nodes.run(), nodes);
    CHECK(nodes.parcels() == 60);
    copied[large] = nodes.bytes_copied();
  }
  // A value has at most the bytes that were read with the record before it (net/limits.h, kInboxBytes).
  CHECK(copied[true] <= 60 * net::kInboxBytes);
  CHECK(copied[true] < 2 * copied[false] + 60 * net::kInboxBytes);
}

TEST_CASE("2.6, 7.11: a handler that fails on another node ends all runs at its tick, while connections are cut") {
  Pipeline pipeline(
      "t.count name=source count=60 ! t.relay name=far fail_at=40 ! t.join name=joined ! t.sink name=sink log=seen "
      "source. ! joined.");
  const Ran expected = run(pipeline);
  REQUIRE_FALSE(expected.ok);
  put(pipeline, "gpu", {"far"});
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    INFO("seed ", seed);
    LinkedNodes nodes(pipeline, {"home", "gpu"}, bad_wires(seed));
    const Ran ran = nodes.run();
    REQUIRE(nodes.broken() == "");
    CHECK_FALSE(ran.ok);
    CHECK(ran.error.what == expected.error.what);
    CHECK(before_tick(40, ran.seen("seen")) == before_tick(40, expected.seen("seen")));
  }
}

TEST_CASE("7.4: both nodes' plans give a crossing the same number, name, depth and formats on their link") {
  Pipeline pipeline(
      "t.count name=source count=5 ! t.relay name=a ! t.relay name=b ! t.relay name=c ! t.sink name=sink log=seen "
      "source. ! t.late name=late after=5 ! t.sink name=other log=other source. ! other.");
  put(pipeline, "gpu", {"a", "c", "late"});
  put(pipeline, "cloud", {"other"});
  LinkedNodes nodes(pipeline, {"home", "gpu", "cloud"}, Wires{});
  const auto of = [&](size_t node, const std::string& peer) {
    return embed::link_crossings(nodes.on(node).plan(), peer, 2);
  };
  const std::vector<net::CrossingPlan> here = of(0, "gpu"), there = of(1, "home");
  REQUIRE(here.size() > 2);
  REQUIRE(there.size() == here.size());
  for (size_t i = 0; i < here.size(); ++i) {
    CHECK(here[i].number == i);
    CHECK(here[i].lane == 1 + i % 2);
    CHECK(there[i].number == i);
    CHECK(there[i].lane == here[i].lane);
    CHECK(there[i].name == here[i].name);
    CHECK(there[i].depth == here[i].depth);
    CHECK(there[i].delivery == net::Delivery::reliable);
    CHECK(there[i].capacities == here[i].capacities);
    REQUIRE(there[i].formats.size() == here[i].formats.size());
    for (size_t v = 0; v < here[i].formats.size(); ++v)
      CHECK(net::hash_of(there[i].formats[v]) == net::hash_of(here[i].formats[v]));
  }
  CHECK(of(1, "cloud").size() == of(2, "gpu").size());
  CHECK(of(1, "nobody").empty());
}

TEST_CASE(
    "7.4: a departure says the parcel before, and the cause of an empty value; its end stands after the last tick") {
  Pipeline pipeline("t.count name=source count=2 ! t.relay name=a every=2 ! t.sink name=sink log=seen");
  put(pipeline, "gpu", {"sink"});
  Setup setup;
  setup.nodes = {"home", "gpu"};
  setup.virtual_time = true;
  Compiled home(pipeline, setup);
  embed::LinkDeparture departure(home.live(), home.plan().crossings.at(0));
  home.live().start();
  exec::VirtualDriver driver(home.time());
  driver.add(home.live());
  driver.drive();
  net::Parcel parcel;
  REQUIRE(departure.next(parcel));
  CHECK(parcel.previous == net::kNoIndex);
  REQUIRE(parcel.value_count == 1);
  CHECK(parcel.values[0].value);
  const int64_t media_ns = parcel.tick.media_time_ns;
  REQUIRE(departure.next(parcel));
  CHECK(parcel.previous == 0);
  CHECK_FALSE(parcel.values[0].value);
  CHECK(parcel.values[0].cause == 1); // `every`
  CHECK(parcel.tick.media_time_ns > media_ns);
  REQUIRE(departure.next(parcel));
  CHECK(parcel.end);
  CHECK(parcel.tick.index == 2);
  CHECK(parcel.previous == 1);
  CHECK(parcel.value_count == 0);
  CHECK_FALSE(departure.next(parcel));
  CHECK(home.wait().ok);
}

TEST_CASE("7.4: a reader on another node learns that an input has ended, as one on the same node does") {
  Pipeline pipeline(
      "t.count name=short count=3 ! t.ended name=sink log=ended ; "
      "t.count name=long count=6 ! sink. short. ! t.relay name=between ! sink.");
  const Ran expected = run(pipeline);
  CHECK(expected.seen("ended").at(2).values == std::vector<int64_t>{0, 0, 0});
  CHECK(expected.seen("ended").at(3).values == std::vector<int64_t>{1, 0, 1});
  put(pipeline, "gpu", {"sink"});
  LinkedNodes nodes(pipeline, {"home", "gpu"}, bad_wires(1));
  check_the_same(expected, nodes.run(), nodes);
}

TEST_CASE("MR0819: a crossing that a link cannot carry is refused by name") {
  Pipeline pipeline = line({}, "seen", 1);
  put(pipeline, "gpu", {"sink"});
  LinkedNodes nodes(pipeline, {"home", "gpu"}, Wires{});
  const auto refusal = [&](const std::function<void(plan::Plan&)>& change) {
    plan::Plan plan = nodes.on(0).plan();
    change(plan);
    try {
      embed::link_crossings(plan, "gpu");
    } catch (const Failure& failure) {
      CHECK(failure.error().code == code::crossing_too_large);
      return failure.error().what;
    }
    return std::string();
  };
  CHECK(refusal([](plan::Plan&) {}).empty());
  CHECK(refusal([](plan::Plan& plan) { plan.channels[0].depth = 65; }) ==
        "crossing main/0>1 with node gpu has 65 ticks under way, and a link carries 64");
  CHECK(refusal([](plan::Plan& plan) {
          std::vector<plan::StepInput>& inputs = plan.steps[plan.channels[0].from].inputs;
          inputs.resize(65, inputs[0]);
        }) == "crossing main/0>1 with node gpu has 65 values, and a link carries 64");
  CHECK(refusal([](plan::Plan& plan) { plan.crossings[0].name = std::string(97, 'a'); }).find("97 characters") !=
        std::string::npos);
  CHECK(refusal([](plan::Plan& plan) { plan.crossings.resize(1025, plan.crossings[0]); }) ==
        "crossing main/0>1 with node gpu has 1025 crossings up to it, and a link carries 1024");
  CHECK(refusal([](plan::Plan& plan) {
          mr_format& format = plan.outputs[plan.steps[plan.channels[0].from].inputs[0].output].format;
          format.shape[0] = int64_t{1} << 26;
        }).find("536870912 bytes in a value") != std::string::npos);
}

TEST_CASE("an end is told how its crossing delivers, and leaves ticks out or goes on while the other node is away") {
  for (const graph::ClockMode mode : {graph::ClockMode::realtime, graph::ClockMode::free}) {
    CAPTURE(static_cast<int>(mode));
    Pipeline pipeline("t.count name=source count=20 ! t.relay name=h1 ! t.join name=both ! t.sink name=sink log=seen");
    pipeline.connect("source", "both");
    pipeline.clock(mode, mode == graph::ClockMode::realtime ? 100 : 0);
    put(pipeline, "gpu", {"h1"});
    Setup setup;
    setup.nodes = {"home", "gpu"};
    setup.virtual_time = true;
    Compiled home(pipeline, setup);
    std::vector<embed::LinkEnd> ends = embed::make_link_ends(home.live(), home.plan(), "gpu");
    REQUIRE(ends.size() == 2);
    const bool is_live = mode == graph::ClockMode::realtime;
    for (embed::LinkEnd& end : ends) {
      CHECK((end.plan.delivery == net::Delivery::live) == is_live);
      end.set_away(true);
    }
    home.live().start();
    exec::VirtualDriver driver(home.time());
    driver.add(home.live());
    driver.drive();
    const Ran ran = home.wait();
    CHECK(ran.error.code == (is_live ? 0 : code::no_progress)); // ticks that must all go wait
    if (!is_live) continue;
    CHECK(ran.seen("seen").size() == 20);
    CHECK(ran.report.crossings.at(0).left_out.at("away") == 20);
    CHECK(ends[0].departure->made() == 1); // the end
  }
}

} // namespace millrace::test
