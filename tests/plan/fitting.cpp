// Ticks in flight where memory is short: what a range allows is lowered, anything else is refused with a remedy.
#include <doctest/doctest.h>

#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// source → relay: two rings of 512 bytes for each tick in flight, on one worker.
Pipeline pair(uint32_t least, uint32_t most) {
  Pipeline p;
  p.clock(graph::ClockMode::free, 0, 1, most);
  p.graph.clocks[0].in_flight_least = least;
  p.add("source", "t.count");
  p.add("relay", "t.relay");
  p.connect("source", "relay");
  return p;
}

plan::Machine with_room_for(uint64_t ticks) {
  plan::Machine machine = machine_of(1);
  machine.domains[0].bytes_limit = ticks * 1024;
  return machine;
}

std::string remedy(const Pipeline& pipeline, const plan::Machine& machine) {
  try {
    Planned planned(pipeline, machine);
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 404);
    return failure.error().edit;
  }
  return "it fits";
}

} // namespace

TEST_CASE("1.5, 3.2: of in_flight: [least, most] the most that fits is taken, and the plan says what it lacked") {
  for (const uint32_t room : {2u, 3u, 5u, 7u}) {
    CAPTURE(room);
    const Planned planned(pair(2, 8), with_room_for(room));
    CHECK(planned.window("source") == room);
    CHECK(planned.memory("cpu") == room * 1024);
  }
  CHECK(Planned(pair(1, 4), with_room_for(2))
            .has_note("in_flight 2 of [1, 4]: 4 would need 4.0 KiB in cpu, which has "
                      "2.0 KiB"));
  const Planned roomy(pair(1, 4), with_room_for(4));
  CHECK(roomy.window("source") == 4);
  CHECK_FALSE(roomy.has_note("in_flight"));
  CHECK(Planned(pair(1, 4), machine_of(1)).window("source") == 4);
}

TEST_CASE("3.2: below the least, and without a range, a plan that does not fit is refused with MR0404") {
  CHECK(refusal(pair(3, 8), with_room_for(2)) == 404);
  CHECK(refusal(pair(0, 8), with_room_for(7)) == 404);
  CHECK(refusal(pair(0, 8), with_room_for(8)) == 0);
}

TEST_CASE("3.2: MR0404 suggests a range where fewer ticks in flight would fit, and else does not") {
  CHECK(remedy(pair(0, 4), with_room_for(2)) == "clock: { in_flight: [1, 3] }");
  CHECK(remedy(pair(0, 2), with_room_for(1)) == "clock: { in_flight: 1 }");
  CHECK(remedy(pair(3, 4), with_room_for(1)) == "clock: { in_flight: [1, 2] }");
  CHECK(remedy(pair(0, 1), with_room_for(0) /* not limited */) == "it fits");
  plan::Machine tiny = machine_of(1);
  tiny.domains[0].bytes_limit = 1;
  CHECK(remedy(pair(0, 4), tiny) == "smaller values, or fewer handlers there");
}

TEST_CASE("1.5: of several clocks the one with the most in flight is lowered first, none below its least") {
  Pipeline p;
  for (const char* name : {"left", "right"}) {
    graph::Clock clock;
    clock.name = name;
    clock.mode = graph::ClockMode::free;
    clock.in_flight = 6;
    clock.in_flight_least = std::string(name) == "left" ? 1 : 5;
    p.graph.clocks.push_back(clock);
    p.add(std::string("of_") + name, "t.count").clock = name;
  }
  plan::Machine machine = machine_of(1);
  machine.domains[0].bytes_limit = 7 * 512;
  const Planned planned(p, machine);
  CHECK(planned.window("of_left") == 2);
  CHECK(planned.window("of_right") == 5);
  CHECK(planned.has_note("clock left: in_flight 2 of [1, 6]: 6 would need"));
  CHECK(planned.has_note("clock right: in_flight 5 of [5, 6]: 6 would need"));
}

TEST_CASE("3.2: room for another cut is given up before a tick in flight is") {
  Pipeline p = line({"t.relay", "t.relay", "t.relay"}, "none", 1);
  p.clock(graph::ClockMode::free);
  const Planned all(p, machine_of(1));
  plan::Machine machine = machine_of(1);
  machine.domains[0].bytes_limit = 4 * 512;
  const Planned planned(p, machine);
  CHECK(planned.window("source") == all.window("source"));
  CHECK(planned.room("source") == planned.window("source"));
}
