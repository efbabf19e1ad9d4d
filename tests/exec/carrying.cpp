// A run tells whoever carries its ticks to other nodes, and ends where a node that is away brings no end.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "exec/crossing.h"
#include "exec/run.h"
#include "exec/virtual_driver.h"
#include "harness.h"
#include "observe/error_codes.h"
#include "plan/plan.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A camera at home; its ticks go by a detector on another node to a screen, which also has them from here.
Pipeline camera_and_screen(int64_t count, graph::ClockMode mode) {
  Pipeline p("t.count name=camera ! t.relay name=detect ! t.join name=screen ! t.sink name=sink log=seen");
  p.graph.handlers[0].params.push_back({"count", std::to_string(count), {}, {}});
  p.connect("camera", "screen");
  for (graph::Handler& handler : p.graph.handlers) handler.node = handler.name == "detect" ? "gpu" : "home";
  p.clock(mode, mode == graph::ClockMode::realtime ? 100 : 0);
  return p;
}

Setup carried_on(uint32_t node, std::function<void()> on_crossing = {}) {
  Setup setup;
  setup.nodes = {"home", "gpu"};
  setup.node = node;
  setup.virtual_time = true;
  setup.options.on_crossing = std::move(on_crossing);
  return setup;
}

const plan::CrossingPlan& crossing_of(const Compiled& node, bool departs) {
  for (const plan::CrossingPlan& crossing : node.plan().crossings)
    if (crossing.departs == departs) return crossing;
  throw std::logic_error("no such crossing");
}

void drive_alone(Compiled& node) {
  node.live().start();
  exec::VirtualDriver driver(node.time());
  driver.add(node.live());
  driver.drive();
}

void give(const exec::Parcel& parcel, exec::Arrival& arrival) {
  for (uint32_t v = 0; v < parcel.values.size(); ++v) {
    if (!parcel.values[v].value) continue;
    const exec::ParcelRoom room = arrival.room(v);
    *room.value = *parcel.values[v].value;
    std::memcpy(room.data, parcel.values[v].data, parcel.values[v].value->header.extent_bytes);
  }
  arrival.arrive(parcel);
}

// Both ends of one crossing. It moves ticks where it was told to look, and else does nothing.
struct Carrier {
  exec::Departure departure;
  exec::Arrival arrival;
  uint64_t given = 0, credit = 0;
  bool has_ended = false;

  // True if a tick has moved.
  bool carry(bool look_at_departure, bool look_at_arrival) {
    if (look_at_arrival) credit = arrival.credit();
    bool moved = false;
    while (look_at_departure || look_at_arrival) {
      exec::Parcel parcel;
      if (given == credit || has_ended || !departure.next(parcel)) break;
      give(parcel, arrival);
      moved = true;
      has_ended = parcel.end;
      if (parcel.end) break;
      ++given;
      departure.let_go();
    }
    return moved;
  }
};

} // namespace

TEST_CASE("a run tells of each parcel, of the end and of room, so that who carries its ticks need not look unasked") {
  for (const graph::ClockMode mode : {graph::ClockMode::free, graph::ClockMode::realtime}) {
    CAPTURE(static_cast<int>(mode));
    const Pipeline pipeline = camera_and_screen(30, mode);
    device::VirtualTime time;
    bool home_told = false, gpu_told = false;
    Setup at_home = carried_on(0, [&] { home_told = true; }), at_gpu = carried_on(1, [&] { gpu_told = true; });
    at_home.time = at_gpu.time = &time;
    Compiled home(pipeline, at_home), gpu(pipeline, at_gpu);
    Carrier there{{home.live(), crossing_of(home, true)}, {gpu.live(), crossing_of(gpu, false)}};
    Carrier back{{gpu.live(), crossing_of(gpu, true)}, {home.live(), crossing_of(home, false)}};
    there.credit = there.arrival.credit();
    back.credit = back.arrival.credit();
    home.live().start();
    gpu.live().start();
    exec::VirtualDriver driver(time);
    driver.add(home.live());
    driver.add(gpu.live());
    driver.add([&] {
      const bool at_home_now = std::exchange(home_told, false), at_gpu_now = std::exchange(gpu_told, false);
      const bool moved_there = there.carry(at_home_now, at_gpu_now);
      return back.carry(at_gpu_now, at_home_now) || moved_there;
    });
    driver.drive();
    const Ran ran = home.wait();
    REQUIRE(ran.error.what == "");
    CHECK(gpu.wait().ok);
    CHECK(there.given == 30);
    CHECK(back.given == 30);
    CHECK(back.has_ended);
    const std::vector<Seen> seen = ran.seen("seen");
    REQUIRE(seen.size() == 30);
    CHECK(seen.back().values.at(0) != kEmpty);
  }
}

TEST_CASE("a parcel and the end may be taken right where the run tells of them, and let go") {
  exec::Departure* departure = nullptr;
  std::vector<uint64_t> taken;
  int ends = 0, told = 0;
  exec::Parcel parcel;
  const auto take = [&] {
    ++told;
    while (departure->next(parcel)) {
      if (parcel.end) {
        ++ends;
        continue;
      }
      taken.push_back(parcel.tick.index);
      CHECK(departure->passed_ns() >= parcel.tick.media_time_ns);
      departure->let_go();
    }
    CHECK(departure->made() == taken.size() + static_cast<size_t>(ends));
  };
  Pipeline pipeline = line({}, "seen", 9);
  pipeline.graph.handlers[0].node = "home";
  pipeline.graph.handlers[1].node = "gpu";
  Compiled home(pipeline, carried_on(0, take));
  exec::Departure the_departure(home.live(), home.plan().crossings.at(0));
  departure = &the_departure;
  drive_alone(home);
  CHECK(taken == std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(ends == 1);
  CHECK(told >= 10);
  CHECK(home.wait().ok);
}

TEST_CASE("a tick that is dropped because it comes too late makes room, and the run tells of it") {
  Pipeline pipeline = camera_and_screen(9, graph::ClockMode::realtime);
  for (graph::Handler& handler : pipeline.graph.handlers)
    if (handler.name == "screen" || handler.name == "sink") handler.node = "wall";
  uint64_t told = 0, told_credit = 0;
  exec::Arrival* from_home = nullptr;
  Setup setup = carried_on(2, [&] { ++told, told_credit = from_home->credit(); });
  setup.nodes = {"home", "gpu", "wall"};
  Compiled wall(pipeline, setup);
  REQUIRE(wall.plan().crossings.size() == 2);
  REQUIRE(wall.plan().crossings[0].node == "home");
  exec::Arrival home(wall.live(), wall.plan().crossings[0]), gpu(wall.live(), wall.plan().crossings[1]);
  from_home = &home;
  const uint64_t depth = home.credit();
  const auto bring = [](exec::Arrival& arrival, uint64_t index, bool end = false) {
    exec::Parcel parcel;
    parcel.tick.index = index;
    parcel.tick.media_time_ns = static_cast<int64_t>(index);
    parcel.end = end;
    if (!end) parcel.values = {{nullptr, nullptr, 0}};
    arrival.arrive(parcel);
  };
  home.away(true);
  bring(gpu, 0);
  bring(gpu, 1);
  wall.time().schedule(10 * kMs, [&] {
    CHECK(told == 2); // both ticks went on without those from home
    home.away(false);
    bring(home, 1);
  });
  wall.time().schedule(11 * kMs, [&] {
    CHECK(told == 3);
    CHECK(told_credit == depth + 1);
    bring(home, 2, true);
    bring(gpu, 2, true);
  });
  drive_alone(wall);
  const Ran ran = wall.wait();
  REQUIRE(ran.error.what == "");
  CHECK(ran.report.crossings.at(0).left_out.at("late") == 1);
}

TEST_CASE("7.9: the ticks of a clock that has ended here end too where the rest would come from a node that is away") {
  for (const int64_t away_at_ms : {0, 45, 300}) { // before all ticks, between them, after the last one
    CAPTURE(away_at_ms);
    const Pipeline pipeline = camera_and_screen(9, graph::ClockMode::realtime);
    Compiled home(pipeline, carried_on(0));
    exec::Departure departure(home.live(), crossing_of(home, true));
    exec::Arrival arrival(home.live(), crossing_of(home, false));
    home.time().schedule(away_at_ms * kMs, [&] {
      departure.peer_away(true);
      arrival.away(true);
    });
    drive_alone(home);
    const Ran ran = home.wait();
    REQUIRE(ran.error.what == "");
    CHECK(ran.ok);
    CHECK(ran.seen("seen").back().index == 8);
    if (away_at_ms == 0) CHECK(ran.seen("seen").size() == 9);
  }
}

TEST_CASE("7.9: a node whose clock is on one that is away ends once it is told to stop, and not before") {
  for (const bool is_stopped : {true, false}) {
    CAPTURE(is_stopped);
    const Pipeline pipeline = camera_and_screen(9, graph::ClockMode::realtime);
    Compiled gpu(pipeline, carried_on(1));
    exec::Departure departure(gpu.live(), crossing_of(gpu, true));
    exec::Arrival arrival(gpu.live(), crossing_of(gpu, false));
    arrival.away(true);
    if (is_stopped) gpu.time().schedule(100 * kMs, [&] { gpu.live().stop(); });
    drive_alone(gpu);
    const Ran ran = gpu.wait();
    CHECK(ran.error.code == (is_stopped ? 0 : code::no_progress));
    if (!is_stopped) continue;
    exec::Parcel parcel;
    REQUIRE(departure.next(parcel));
    CHECK(parcel.end);
  }
}

TEST_CASE("7.9: ticks that must all come are waited for, also from a node that is away after the clock has ended") {
  const Pipeline pipeline = camera_and_screen(1, graph::ClockMode::free);
  Compiled home(pipeline, carried_on(0));
  exec::Departure departure(home.live(), crossing_of(home, true));
  exec::Arrival arrival(home.live(), crossing_of(home, false));
  departure.peer_away(true);
  arrival.away(true);
  drive_alone(home);
  CHECK(home.wait().error.code == code::no_progress);
}

TEST_CASE("7.9: a pace whose feeds are all away tells its readers that it is stranded, until a tick comes") {
  const Pipeline pipeline = camera_and_screen(9, graph::ClockMode::realtime);
  uint64_t told = 0;
  Compiled gpu(pipeline, carried_on(1, [&] { ++told; }));
  exec::Departure departure(gpu.live(), crossing_of(gpu, true));
  exec::Arrival arrival(gpu.live(), crossing_of(gpu, false));
  exec::Parcel parcel;
  const auto bring = [&](uint64_t index) {
    exec::Parcel brought;
    brought.tick.index = index;
    brought.tick.media_time_ns = static_cast<int64_t>(index);
    brought.values = {{nullptr, nullptr, 0}};
    arrival.arrive(brought);
  };
  CHECK(!departure.is_stranded());
  gpu.time().schedule(10 * kMs, [&] {
    CHECK(!departure.is_stranded()); // it waits for a node that is there
    bring(0);
    arrival.stranded(true); // or away(true): home itself waits for another node
  });
  gpu.time().schedule(20 * kMs, [&] {
    CHECK(!departure.is_stranded()); // a tick is still to be taken
    REQUIRE(departure.next(parcel));
    CHECK(departure.is_stranded());
    departure.let_go();
    arrival.stranded(false);
  });
  gpu.time().schedule(30 * kMs, [&] {
    CHECK(!departure.is_stranded());
    arrival.away(true);
  });
  gpu.time().schedule(40 * kMs, [&] {
    CHECK(departure.is_stranded());
    told = 0;
    bring(1);
  });
  gpu.time().schedule(50 * kMs, [&] {
    CHECK(told >= 2); // of the tick, and that it is stranded once more
    REQUIRE(departure.next(parcel));
    departure.let_go();
    CHECK(departure.is_stranded());
    gpu.live().clocks_are_over();
  });
  drive_alone(gpu);
  CHECK(gpu.wait().ok);
  REQUIRE(departure.next(parcel));
  CHECK(parcel.end);
  CHECK(!departure.is_stranded());
}

TEST_CASE("7.9: a run has ended its clocks once those are over that have their home here, whatever else it waits for") {
  const Pipeline pipeline = camera_and_screen(9, graph::ClockMode::realtime);
  Compiled home(pipeline, carried_on(0)), gpu(pipeline, carried_on(1));
  CHECK(gpu.live().have_clocks_ended()); // it has none
  CHECK(!home.live().have_clocks_ended());
  exec::Arrival arrival(home.live(), crossing_of(home, false));
  home.time().schedule(40 * kMs, [&] { CHECK(!home.live().have_clocks_ended()); });
  home.time().schedule(500 * kMs, [&] {
    CHECK(home.live().have_clocks_ended());
    CHECK(!home.live().finished());
    arrival.stranded(true); // gpu is there, and waits for somebody else
  });
  drive_alone(home);
  CHECK(home.live().finished());
  CHECK(home.wait().ok);
}
