// Ticks in flight where memory is short: what a range allows is lowered, anything else is refused with a remedy.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/unfold.h"
#include "plan/domain.h"
#include "plan/print.h"
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

TEST_CASE("3.2: host memory that a handler takes by itself is counted, printed and refused where it does not fit") {
  constexpr uint64_t kTaken = 5 << 20;
  const Pipeline pipeline("t.count ! p.weights name=net ! t.sink log=none");
  const Planned planned(pipeline, machine_of(1));
  CHECK(planned.memory("cpu") > kTaken);
  CHECK(planned.text().find("net") != std::string::npos);
  CHECK(planned.text().find("5.0 MiB: what it works in\n") != std::string::npos);
  plan::Machine machine = machine_of(1);
  machine.domains[0].bytes_limit = kTaken;
  CHECK(refusal(pipeline, machine) == 404);
  machine.domains[0].bytes_limit = planned.memory("cpu");
  CHECK(refusal(pipeline, machine) == 0);
}

TEST_CASE("4.7: state is counted where the handler runs, printed, in the JSON, and refused where it does not fit") {
  for (const std::string domain : {"cpu", "sim:0"}) {
    CAPTURE(domain);
    Pipeline pipeline("t.count ! p.state name=keeper kib=3072 ! t.sink log=none");
    pipeline.graph.handlers[1].device = domain;
    const plan::Machine machine = machine_of(1, {"cpu", "sim:0"});
    const Planned planned(pipeline, machine);
    CHECK(planned.memory(domain) >= 3072 * 1024);
    CHECK(planned.text().find("keeper") != std::string::npos);
    CHECK(planned.text().find("3.0 MiB: its state\n") != std::string::npos);
    CHECK(plan::print_json(planned.plan()).find("\"state_bytes\": 3145728") != std::string::npos);
    plan::Machine small = machine;
    plan::Domain& tight = small.domains[domain == "cpu" ? 0 : 1];
    tight.bytes_limit = 3072 * 1024;
    const Error error = error_of(pipeline, small);
    CHECK(error.code == 404);
    CHECK(std::find(error.notes.begin(), error.notes.end(), "3145728 for the state of keeper") != error.notes.end());
    tight.bytes_limit = planned.memory(domain);
    CHECK(refusal(pipeline, small) == 0);
  }
}

TEST_CASE("host memory that a handler of each stream takes is one line of the plan, with the number of streams") {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml(R"(version: 1
streams: { cameras: { items: [gate, hall, yard] } }
handlers:
  source: { type: t.count, for_each: cameras }
  net:    { type: p.weights, for_each: cameras, input: source }
  sink:   { type: t.sink, for_each: cameras, input: net, log: none }
)",
                                                   "streams.yaml"));
  const std::string text = Planned(pipeline, machine_of(1)).text();
  CHECK(text.find("3 × 5.0 MiB: what it works in") != std::string::npos);
  CHECK(text.find(": what it works in") == text.rfind(": what it works in"));
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

TEST_CASE(
    "3.2: ticks in flight are lowered for a device's memory too, and below the least it is refused with its sum") {
  // The copy that came up and the output of relay: two rings of 512 bytes on the device.
  Pipeline p("t.count name=source ! t.relay name=relay device=sim:0 ! t.sink name=sink log=none");
  p.clock(graph::ClockMode::free, 0, 1, 8);
  p.graph.clocks[0].in_flight_least = 1;
  plan::Machine machine = machine_of(1, {"cpu", "sim:0"});
  for (const uint32_t room : {1u, 3u, 8u, 9u}) {
    CAPTURE(room);
    machine.domains[1].bytes_limit = room * 1024;
    const Planned planned(p, machine);
    CHECK(planned.window("source") == std::min(room, 8u));
    CHECK(planned.memory("sim:0") == std::min(room, 8u) * 1024);
  }
  p.graph.clocks[0].in_flight_least = 4;
  machine.domains[1].bytes_limit = 3 * 1024;
  try {
    Planned planned(p, machine);
    FAIL("it does not fit");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 404);
    CHECK(failure.error().what == "the plan needs 4096 bytes in sim:0, which has 3072");
    CHECK(failure.error().notes.size() == 2);
    CHECK(failure.error().edit == "clock: { in_flight: [1, 3] }");
  }
}

TEST_CASE("8.3: memory that is short lowers no clock below what clocks that wait for each other hold") {
  Pipeline p;
  for (const char* name : {"left", "right"}) {
    graph::Clock clock;
    clock.name = name;
    clock.mode = graph::ClockMode::free;
    clock.rate = {30, 1};
    clock.in_flight = 8;
    clock.in_flight_least = 1;
    p.graph.clocks.push_back(clock);
    p.add(std::string("of_") + name, "t.count").clock = name;
    p.add(std::string("joins_") + name, "t.join").clock = name;
    p.connect(std::string("of_") + name, std::string("joins_") + name + ".in");
  }
  for (const auto& [from, to] : {std::pair("of_left", "joins_right"), {"of_right", "joins_left"}})
    p.connect(from, std::string(to) + ".in", graph::Policy::align).within_ns = 40'000'000;
  plan::Machine machine = machine_of(1);
  const uint64_t all = Planned(p, machine).memory("cpu");
  uint32_t least = 8;
  for (uint64_t bytes = all; bytes > 0; bytes -= std::min<uint64_t>(bytes, 512)) {
    machine.domains[0].bytes_limit = bytes;
    if (refusal(p, machine) == 404) break;
    const Planned planned(p, machine);
    least = std::min({least, planned.window("of_left"), planned.window("of_right")});
  }
  CHECK(least == 4); // 1 + 30/s × 80 ms, as of a clock with a fixed number
}

TEST_CASE("8.4: memory that is short takes no room from results that may be owed") {
  Pipeline p("t.count name=source ! t.late name=later ! t.sink name=sink log=none");
  p.clock(graph::ClockMode::free, 0, 1, 8);
  plan::Machine machine = machine_of(1);
  const Planned all(p, machine);
  const uint32_t owed = all.window("later") - 8;
  REQUIRE(owed > 0);
  p.graph.clocks[0].in_flight_least = 1;
  machine.domains[0].bytes_limit = all.memory("cpu") - 1;
  CHECK(Planned(p, machine).window("later") < 8 + owed);
  p.graph.clocks[0].in_flight = 1;
  const uint64_t least = Planned(p, machine).memory("cpu");
  p.graph.clocks[0].in_flight = 8;
  machine.domains[0].bytes_limit = least;
  CHECK(Planned(p, machine).window("later") == 1 + owed);
  machine.domains[0].bytes_limit = least - 1;
  CHECK(refusal(p, machine) == 404);
}
