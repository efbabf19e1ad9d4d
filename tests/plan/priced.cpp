// Handlers that the calculation places, and those that stay where a person put them.
#include <doctest/doctest.h>

#include "graph/unfold.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// source → "a" → "b" → sink; both are much faster on the device, unless it is said otherwise.
Pipeline priced_chain(const std::string& cpu_us = "5000", const std::string& gpu_us = "20") {
  Pipeline p;
  p.add("source", "t.count");
  p.add("a", "p.priced", {{"cpu_us", cpu_us}, {"gpu_us", gpu_us}});
  p.add("b", "p.priced", {{"cpu_us", "5000"}, {"gpu_us", "20"}});
  p.add("sink", "t.sink", {{"log", "none"}});
  p.connect("source", "a");
  p.connect("a", "b");
  p.connect("b", "sink");
  return p;
}

plan::Machine machine_with_device() {
  plan::Machine machine;
  machine.workers = 2;
  machine.use(plan::domains_named({"cpu", "sim:0"}));
  connect_host(machine, "sim:0", plan::HopPrice(10, 1.0 / 10'000));
  return machine;
}

using Places = std::vector<std::string>;

Places places(const Planned& planned) { return {planned.place("a"), planned.place("b")}; }

// source → "a" → sink at 30 Hz, for so many streams.
Pipeline priced_streams(size_t count, const std::string& cpu_us, const std::string& gpu_us) {
  std::string items;
  for (size_t s = 0; s < count; ++s) items += (s == 0 ? "s" : ", s") + std::to_string(s) + ": {}";
  Pipeline p;
  p.graph = graph::unfold(graph::parse_yaml("version: 1\nstreams: { cameras: { items: { " + items + R"( } } }
clocks: { cameras: { mode: realtime, rate: 30 } }
handlers:
  source: { type: t.count, for_each: cameras }
  a:      { type: p.priced, for_each: cameras, input: source, cpu_us: )" +
                                                cpu_us + ", gpu_us: " + gpu_us + R"( }
  sink:   { type: t.sink, for_each: cameras, input: a, log: none }
)",
                                            "streams.yaml"));
  return p;
}

// By stream: where its "a" is.
Places places_of_streams(const Planned& planned, size_t count) {
  Places places;
  for (size_t s = 0; s < count; ++s) places.push_back(planned.place("a@s" + std::to_string(s)));
  return places;
}

} // namespace

TEST_CASE("5.3: streams are placed alike, and where there is room for all of them") {
  plan::Machine machine = machine_with_device();
  machine.workers = 4;
  CHECK(places_of_streams(Planned(priced_streams(1, "1000", "600"), machine), 1) == Places{"sim:0"});
  // 64 · 0.6 ms are more than a device may be busy in 33 ms, and 64 · 1 ms are no more than four workers may.
  const Planned many(priced_streams(64, "1000", "600"), machine);
  CHECK(places_of_streams(many, 64) == Places(64, "cpu"));
  CHECK(many.has_note("placed by price: 64 of 192 handlers, all placements tried: the fullest is busy for 16.0 ms"));
  CHECK(places_of_streams(Planned(priced_streams(64, "1000", "300"), machine), 64) == Places(64, "sim:0"));
}

TEST_CASE("5.3: each stream pays for its own copies and its own launches") {
  plan::Machine machine = machine_with_device();
  machine.workers = 4;
  machine.launches = {{"sim:0", 200, 0}};
  CHECK(places_of_streams(Planned(priced_streams(4, "1000", "300"), machine), 4) == Places(4, "sim:0"));
  CHECK(places_of_streams(Planned(priced_streams(64, "1000", "300"), machine), 64) == Places(64, "cpu"));
  machine.launches.clear();
  connect_host(machine, "sim:0", plan::HopPrice(500, 1.0 / 10'000));
  CHECK(places_of_streams(Planned(priced_streams(4, "2000", "300"), machine), 4) == Places(4, "sim:0"));
  CHECK(places_of_streams(Planned(priced_streams(48, "2000", "300"), machine), 48) == Places(48, "sim:0"));
  CHECK(places_of_streams(Planned(priced_streams(60, "1700", "300"), machine), 60) == Places(60, "cpu"));
}

TEST_CASE("5.6: a stream with a device of its own stays there, and the others are placed beside it") {
  plan::Machine machine = machine_with_device();
  machine.workers = 1;
  Pipeline p = priced_streams(3, "1000", "300");
  for (graph::Handler& handler : p.graph.handlers)
    if (handler.name == "a@s1") handler.device = "cpu";
  const Planned planned(p, machine);
  CHECK(places_of_streams(planned, 3) == Places{"sim:0", "cpu", "sim:0"});
  CHECK(planned.reason("a@s1") == "pinned by device:");
  for (graph::Handler& handler : p.graph.handlers)
    if (handler.name == "a@s1") handler.device = "sim:0";
  CHECK(places_of_streams(Planned(p, machine), 3) == Places(3, "sim:0"));
}

TEST_CASE("5.6: handlers whose price is known everywhere go where the calculation has them, and the plan says why") {
  const Planned planned(priced_chain(), machine_with_device());
  CHECK(places(planned) == Places{"sim:0", "sim:0"});
  CHECK(planned.reason("a").starts_with("20 µs a call, 5000 µs on cpu; there "));
  CHECK(planned.has_note("placed by price: 2 of 4 handlers, all placements tried"));
  CHECK(planned.hops() == std::vector<std::string>{"cpu → sim:0", "sim:0 → cpu"});
}

TEST_CASE("5.6: a sink whose price nobody knows is placed with what it reads, and charges nobody for a copy") {
  Pipeline p = priced_chain("110", "90");
  p.graph.handlers.erase(p.graph.handlers.begin() + 2); // "b"
  p.graph.edges.pop_back();
  p.graph.edges.back().target = "sink";
  plan::Machine machine = machine_with_device();
  plan::HopPrice hop(15, 0);
  hop.overlaps_compute = false;
  connect_host(machine, "sim:0", hop);
  CHECK(Planned(p, machine).place("a") == "cpu"); // up and down 30 µs, to save 20
  p.graph.handlers.back() = {};
  p.graph.handlers.back().name = "sink";
  p.graph.handlers.back().type = "p.gpusink";
  const Planned planned(p, machine);
  CHECK(planned.place("a") == "sim:0");
  CHECK(planned.place("sink") == "sim:0");
  CHECK(planned.reason("sink") == "where what it reads is made");
  CHECK(planned.hops() == std::vector<std::string>{"cpu → sim:0"});
}

TEST_CASE("5.6: what is not worth its copies stays on the host") {
  plan::Machine machine = machine_with_device();
  connect_host(machine, "sim:0", plan::HopPrice(20'000, 1.0 / 10'000));
  CHECK(places(Planned(priced_chain(), machine)) == Places{"cpu", "cpu"});
}

TEST_CASE("5.5: what a device takes for each region and each copy counts, and may keep work on the host") {
  plan::Machine machine = machine_with_device();
  machine.launches = {{"sim:0", 4000, 0}, {"sim:1", 1e6, 1e6}};
  CHECK(places(Planned(priced_chain(), machine)) == Places{"sim:0", "sim:0"});
  machine.launches = {{"sim:0", 20'000, 0}};
  CHECK(places(Planned(priced_chain(), machine)) == Places{"cpu", "cpu"});
  machine.launches = {{"sim:0", 0, 3000}}; // one copy up and one down
  CHECK(places(Planned(priced_chain(), machine)) == Places{"cpu", "cpu"});
  machine.launches = {{"sim:0", 20'000, 0}, {"sim:0", 0, 1000}}; // the last counts
  CHECK(places(Planned(priced_chain(), machine)) == Places{"sim:0", "sim:0"});
}

TEST_CASE("5.6: a handler without a price on a device is put by the order of --devices, and the others around it") {
  plan::Machine machine = machine_with_device();
  const Planned planned(priced_chain("5000", "0"), machine);
  CHECK(places(planned) == Places{"cpu", "sim:0"});
  CHECK(planned.reason("a").starts_with("first of --devices"));
  machine.use(plan::domains_named({"sim:0", "cpu"}));
  CHECK(places(Planned(priced_chain("5000", "0"), machine)) == Places{"sim:0", "sim:0"});
}

TEST_CASE("5.6: a price never brings a handler to a domain that --devices leaves out") {
  plan::Machine machine = machine_with_device();
  machine.use(plan::domains_named({"sim:0"}));
  Pipeline p = priced_chain("20", "5000");
  CHECK(places(Planned(p, machine)) == Places{"sim:0", "sim:0"});
  machine.use(plan::domains_named({"sim:0", "cpu"}));
  CHECK(places(Planned(p, machine)) == Places{"cpu", "sim:0"});
}

TEST_CASE("5.6: a pin counts more than any price") {
  Pipeline p = priced_chain();
  p.graph.handlers[1].device = "cpu";
  const Planned planned(p, machine_with_device());
  CHECK(places(planned) == Places{"cpu", "sim:0"});
  CHECK(planned.reason("a") == "pinned by device:");
}

TEST_CASE("5.6: both ends of an edge that forbids copies stay where the order puts them") {
  Pipeline p = priced_chain();
  p.graph.edges[1].forbid_copy = true;
  CHECK(places(Planned(p, machine_with_device())) == Places{"cpu", "cpu"});
}

TEST_CASE("5.6: a handler that says that it does not run somewhere is not put there, and a pin there is refused") {
  CHECK(places(Planned(priced_chain("5000", "-1"), machine_with_device())) == Places{"cpu", "sim:0"});
  CHECK(places(Planned(priced_chain("-1", "20"), machine_with_device())) == Places{"sim:0", "sim:0"});
  Pipeline p = priced_chain("5000", "-1");
  p.graph.handlers[1].device = "sim:0";
  try {
    const Planned planned(p, machine_with_device());
    FAIL("it was not refused");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 408);
    CHECK(failure.error().notes == std::vector<std::string>{"with these parameters it does not run there"});
  }
}
