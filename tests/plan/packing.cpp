// Small copies that go the same way become one.
#include <doctest/doctest.h>

#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// source → a, b on the host → join on sim:0; `between` handlers of a microsecond each stand before b.
Pipeline two_ways(uint32_t between = 0) {
  Pipeline p("t.count name=source ! t.relay name=a");
  std::string last = "source";
  for (uint32_t i = 0; i < between; ++i) {
    const std::string name = "slow" + std::to_string(i);
    p.add(name, "t.relay");
    p.connect(last, name);
    last = name;
  }
  p.add("b", "t.relay");
  p.connect(last, "b");
  p.add("join", "t.join").device = "sim:0";
  p.connect("a", "join.in");
  p.connect("b", "join.in");
  return p;
}

plan::Options cheap() {
  plan::Options options;
  for (const char* name : {"source", "a", "b", "slow0", "slow1", "join"}) options.costs_ns[name] = 1'000;
  return options;
}

const plan::Machine with_device = machine_of(2, {"cpu", "sim:0"}); // its hops are guessed: 10 µs, 12 GB/s

size_t copies(const Pipeline& p, const plan::Options& options = cheap(), const plan::Machine& machine = with_device) {
  return Planned(p, machine, options).copies().size();
}

} // namespace

TEST_CASE("4.6: small values that are ready together and cross the same boundary are one copy, and the plan says so") {
  const Planned planned(two_ways(), with_device, cheap());
  REQUIRE(planned.copies().size() == 1);
  const CopyView copy = planned.copies()[0];
  CHECK(copy.edges == 2);
  CHECK(copy.bytes == 2 * (256 + 8));
  CHECK(copy.one_by_one_us == doctest::Approx(2 * (10 + 264.0 / 12'000)));
  CHECK(copy.predicted_us == doctest::Approx(10 + 528.0 / 12'000));
  CHECK(planned.text().find("+ copy a.out, b.out, cpu → sim:0: 528 B, 10.0 µs by a guess in one, 20.0 "
                            "µs one by one; ") != std::string::npos);
  CHECK(copy.values == 2);
  CHECK(copy.values_out == 2);
  CHECK(planned.packed_together("a", "b"));
  CHECK(planned.ring("a").length == planned.ring("b").length);
  CHECK_FALSE(planned.packed("join"));
}

TEST_CASE("4.6: two outputs of one handler are packed, whatever it costs") {
  Pipeline p("t.count name=source ! p.two name=two ; two.left ! t.join name=join device=sim:0 ; two.right ! join.in");
  CHECK(copies(p, {}) == 1);
}

TEST_CASE("4.6: what would have to wait longer than a copy's beginning costs is copied by itself") {
  plan::Options options = cheap();
  CHECK(copies(two_ways(2), options) == 1);
  options.costs_ns["slow1"] = 11'000;
  CHECK(copies(two_ways(2), options) == 2);
  CHECK(copies(two_ways(2), {}) == 2); // nobody knows how long they take
}

TEST_CASE("4.6: what costs more for its bytes than for its beginning is copied by itself") {
  plan::Machine machine = with_device;
  connect_host(machine, "sim:0", plan::HopPrice(10, 10.0 / 264));
  CHECK(copies(two_ways(), cheap(), machine) == 2); // each as much as that, both together twice
  connect_host(machine, "sim:0", plan::HopPrice(10, 5.0 / 264));
  CHECK(copies(two_ways(), cheap(), machine) == 1);
}

TEST_CASE("4.6: a value that is made from what another copy brought is never packed with it") {
  Pipeline p = two_ways();
  p.add("back", "t.relay");
  p.connect("join", "back"); // to the host, and there again
  p.add("again", "t.relay").device = "sim:0";
  p.connect("back", "again");
  plan::Options options = cheap();
  options.costs_ns["back"] = options.costs_ns["again"] = 1;
  plan::Machine machine = with_device;
  connect_host(machine, "sim:0", plan::HopPrice(1'000, 0)); // worth waiting for whatever it is
  CHECK(copies(p, options, machine) == 3);
}

TEST_CASE("4.6: what is held for longer than its ticks has no fixed place, and is copied by itself") {
  Pipeline p = two_ways();
  p.add("late", "t.sink", {{"log", "none"}});
  p.connect("b", "late", graph::Policy::queue);
  CHECK(copies(p) == 2);
}
