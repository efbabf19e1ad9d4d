// The ends of a run, called by hand: what a departure gives, and ends that are used after the run was waited for.
#include "exec/crossing.h"

#include <doctest/doctest.h>

#include <cstring>

#include "exec/run.h"
#include "exec/virtual_driver.h"
#include "harness.h"
#include "plan/pace.h"
#include "plan/plan.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A source at home whose values go to a sink on another node.
Pipeline two_nodes(int64_t count) {
  Pipeline pipeline = line({}, "seen", count);
  pipeline.graph.handlers[0].node = "home";
  pipeline.graph.handlers[1].node = "gpu";
  return pipeline;
}

// The run of one of the nodes, on a virtual time of its own.
Setup on_node(uint32_t node) {
  Setup setup;
  setup.nodes = {"home", "gpu"};
  setup.node = node;
  setup.virtual_time = true;
  return setup;
}

uint64_t number_in(const exec::ParcelValue& value) {
  uint64_t number = 0;
  std::memcpy(&number, value.data, sizeof number);
  return number;
}

void drive(Compiled& compiled) {
  exec::VirtualDriver driver(compiled.time());
  driver.add(compiled.live());
  driver.drive();
}

} // namespace

TEST_CASE("7.4: a departure gives each tick once, then the end, and says how many it has made") {
  Compiled home(two_nodes(2), on_node(0));
  exec::Departure departure(home.live(), home.plan().crossings.at(0));
  CHECK(departure.made() == 0);
  home.live().start();
  drive(home);
  CHECK(departure.made() == 3);
  exec::Parcel parcel;
  for (uint64_t index : {0u, 1u}) {
    REQUIRE(departure.next(parcel));
    CHECK_FALSE(parcel.end);
    CHECK(parcel.tick.index == index);
    CHECK(number_in(parcel.values.at(0)) == index);
    CHECK(parcel.begun_ns >= 0); // the first ticks are measured
  }
  REQUIRE(departure.next(parcel));
  CHECK(parcel.end);
  CHECK_FALSE(departure.next(parcel));
  CHECK(home.wait().ok);
}

TEST_CASE("7.7: of ticks that no link takes a live crossing keeps the newest, and a reliable one the oldest") {
  for (const bool is_live : {true, false}) {
    CAPTURE(is_live);
    Pipeline pipeline = two_nodes(20);
    pipeline.clock(graph::ClockMode::realtime, 100);
    pipeline.graph.edges[0].delivery = is_live ? graph::Delivery::live : graph::Delivery::reliable;
    Compiled home(pipeline, on_node(0));
    exec::Departure departure(home.live(), home.plan().crossings.at(0));
    home.live().start();
    drive(home);
    std::vector<uint64_t> kept;
    for (exec::Parcel parcel; departure.next(parcel) && !parcel.end;) kept.push_back(parcel.tick.index);
    const uint64_t depth = home.plan().channels[home.plan().crossings.at(0).channel].depth;
    REQUIRE(kept.size() == depth);
    for (uint64_t i = 0; i < depth; ++i) CHECK(kept[i] == (is_live ? 20 - depth + i : i));
    const Ran ran = home.wait();
    CHECK(dropped(ran.report.edges[0], "link") == 20 - depth);
  }
}

TEST_CASE("7.10: ticks that went with a process of the other node are in the report of both ends") {
  Compiled home(two_nodes(2), on_node(0)), gpu(two_nodes(2), on_node(1));
  exec::Departure departure(home.live(), home.plan().crossings.at(0));
  exec::Arrival arrival(gpu.live(), gpu.plan().crossings.at(0));
  home.live().start();
  drive(home);
  exec::Parcel parcel;
  REQUIRE(departure.next(parcel));
  departure.let_go();
  REQUIRE(departure.next(parcel));
  departure.let_go(true);
  CHECK(home.wait().report.crossings.at(0).lost == 1);
  gpu.live().start();
  const exec::ParcelRoom room = arrival.room(0);
  exec::Parcel after;
  after.tick.index = 4;
  after.lost = 3;
  after.values = {{room.value, room.data, 0}};
  arrival.arrive(after);
  gpu.live().interrupt();
  CHECK(gpu.wait().report.crossings.at(0).lost == 3);
}

TEST_CASE("7.6: after its run was waited for, a departure gives nothing and lets nothing go twice") {
  Compiled home(two_nodes(2), on_node(0));
  exec::Departure departure(home.live(), home.plan().crossings.at(0));
  home.live().start();
  drive(home);
  exec::Parcel parcel;
  REQUIRE(departure.next(parcel));
  const Ran ran = home.wait();
  REQUIRE(ran.report.edges.size() == 1);
  CHECK(dropped(ran.report.edges[0], "end") == 1); // the other one was given to the link
  departure.let_go();
  while (departure.next(parcel)) CHECK(parcel.end);
  CHECK(departure.made() == 3);
}

TEST_CASE("7.6: after its run was waited for, an arrival drops what arrives") {
  Compiled gpu(two_nodes(2), on_node(1));
  {
    exec::Arrival arrival(gpu.live(), gpu.plan().crossings.at(0));
    CHECK(arrival.credit() == 2);
    gpu.live().start();
    gpu.live().interrupt();
    CHECK_FALSE(gpu.wait().report.handlers.empty());
    for (uint64_t index = 0; index < 5; ++index) {
      const exec::ParcelRoom room = arrival.room(0);
      exec::Parcel parcel;
      parcel.tick.index = index;
      parcel.values = {{room.value, room.data, 0}};
      arrival.arrive(parcel);
    }
    CHECK(arrival.credit() == 2);
  }
  CHECK_THROWS(gpu.seen("seen")); // nobody wrote
}
