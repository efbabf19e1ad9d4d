// Limit cases of the passes: gates that nothing feeds, values that are held a tick longer, regions that would wait for
// themselves, and their words in the printed plan.
#include <doctest/doctest.h>

#include <algorithm>

#include "planned.h"
#include "tests/contains.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// source → each of the capturable handlers, all on sim:0, by the edges given.
Pipeline on_device(const std::vector<std::pair<std::string, std::string>>& edges,
                   const std::map<std::string, std::string>& types) {
  Pipeline p;
  p.add("source", "t.count");
  for (const auto& [name, type] : types) p.add(name, type).device = type == "t.relay" ? "cpu" : "sim:0";
  for (const auto& [from, to] : edges) p.connect(from, to);
  return p;
}

const plan::Machine one_device = machine_of(1, {"cpu", "sim:0"});

} // namespace

TEST_CASE("1.6: a gate that nothing feeds by sync or queue lets every tick in") {
  Pipeline p;
  p.add("source", "t.count");
  p.add("watch", "t.sink", {{"log", "none"}}); // reads by latest alone
  p.connect("source", "watch", graph::Policy::latest);
  const Planned planned(p);
  REQUIRE(planned.decoupled("watch"));
  const GateView gate = planned.gate("watch");
  CHECK_FALSE(gate.fed);
  CHECK(gate.every_tick);
  CHECK(gate.busy);
}

TEST_CASE("1.6: a queue that rejoins its own tick holds it open, and the plan says so") {
  Pipeline p(
      "t.count name=source ! t.late name=late ; t.need name=both ! t.sink name=sink log=none ; late. ! both.a ; "
      "source. ! both.b policy=queue depth=8");
  const Planned planned(p);
  CHECK_FALSE(planned.decoupled("both"));
  CHECK(planned.queue_capacities().empty());
  CHECK(contains(planned.line_with("source.out → both.b"), "the queue holds the tick open"));
}

TEST_CASE("3.2: a value that a delayed reader repeats is held, the one and the one before it") {
  Pipeline p;
  p.clock(graph::ClockMode::free, 0, 1, 3);
  p.add("source", "t.count");
  p.add("both", "t.need");
  p.connect("source", "both.a");
  graph::Edge& edge = p.connect("source", "both.b");
  edge.delay = 2;
  edge.initial_empty = true;
  const Planned planned(p);
  CHECK(planned.ring("source").reasons == Names{"3 in flight", "2 repeated by both", "2 by delay"});
  CHECK(planned.ring("source").length == 7);
  CHECK(planned.ring("source").dynamic); // which value is the last one is known at run time
}

TEST_CASE("3.2: the values that a paced source is ahead of its clock have blocks of their own") {
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 25, 1, 3);
  p.add("source", "t.count", {{"rate", "25"}});
  p.add("sink", "t.sink", {{"log", "none"}});
  p.connect("source", "sink");
  CHECK(Planned(p).ring("source").reasons == Names{"3 in flight", "3 read ahead by the source"});
  p.graph.clocks[0].mode = graph::ClockMode::free; // it is asked when its tick begins
  CHECK(Planned(p).ring("source").reasons == Names{"3 in flight"});
}

TEST_CASE("3.2: each ring's length is the sum of its reasons") {
  Pipeline p(
      "t.count name=source ! t.keep name=keep ! t.late name=late ; source. ! t.paced name=paced ! t.sink name=sink "
      "log=none ; late. ! paced.extra policy=latest lag=2 ; keep. ! sink.in policy=latest ; source. ! sink.in "
      "delay=4");
  p.clock(graph::ClockMode::free, 0, 1, 2);
  const Planned planned(p);
  REQUIRE(planned.rings().size() >= 4);
  for (const RingView& ring : planned.rings()) {
    uint32_t sum = 0;
    for (const std::string& reason : ring.reasons) sum += static_cast<uint32_t>(std::stoul(reason));
    CHECK(ring.length == sum);
  }
}

TEST_CASE("3.2: the refusal of a plan that does not fit lists what needs the memory") {
  Pipeline p("t.count name=source ! t.relay name=relay");
  plan::Machine small;
  small.domains[0].bytes_limit = 1;
  std::string said;
  try {
    Planned(p, small);
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 404);
    said = failure.what();
  }
  CHECK(contains(said, "1 × 512 for source.out"));
  CHECK(contains(said, "1 × 512 for relay.out"));
  small.domains[0].bytes_limit = 0; // not limited
  CHECK(refusal(p, small) == 0);
  small.use(plan::domains_named({"cpu", "sim:0"}));
  small.domains[1].bytes_limit = 1; // a limit of a domain that the plan does not use
  CHECK(refusal(p, small) == 0);
}

TEST_CASE("3.4: an output that nobody reads is not copied, wherever it is") {
  Pipeline p("t.count name=source ! p.two name=two device=sim:0 ; two.left ! t.sink name=sink log=none");
  CHECK(Planned(p, one_device).hops() == Names{"cpu → sim:0", "sim:0 → cpu"});
  p.graph.edges.pop_back();
  p.connect("source", "sink");
  CHECK(Planned(p, one_device).hops() == Names{"cpu → sim:0"});
}

TEST_CASE("3.4, 5.6: a copy is printed with its route, bytes, predicted time and readers") {
  Pipeline p("t.count name=source ! t.relay name=relay device=sim:0");
  plan::Machine machine = one_device;
  CHECK(contains(Planned(p, machine).text(),
                 "+ copy source.out, cpu → sim:0: 264 B, 10.0 µs by a guess; read by relay in sim:0"));
  connect_host(machine, "sim:0", plan::HopPrice(5, 1.0 / 132));
  CHECK(contains(Planned(p, machine).text(), "+ copy source.out, cpu → sim:0: 264 B, 7.0 µs; read by relay in sim:0"));
}

TEST_CASE("3.5: a buffer whose first value is an initial one has no bytes to write over") {
  Pipeline p(
      "t.count name=source ! t.relay name=side ; t.paint name=paint ! t.sink name=sink log=none ; side. ! paint. "
      "policy=latest initial=empty ; source. ! sink.in");
  const Planned planned(p);
  CHECK(planned.owns_memory("paint"));
  CHECK(planned.has_note("paint copies its input before it writes: its first value is an initial one"));
}

TEST_CASE("3.5: a writer in another pace or after a latest edge copies, since others may hold the buffer") {
  Pipeline p(
      "t.count name=source ; t.paint name=paint ! t.sink name=sink log=none ; source. ! paint. policy=queue depth=2");
  const Planned planned(p);
  REQUIRE(planned.decoupled("paint"));
  CHECK(planned.owns_memory("paint"));
  CHECK(planned.has_note("the buffer is held by another pace"));
}

TEST_CASE("4.5: a region never waits for itself: what leads out of it and back begins another one") {
  // a → b → c on the device, and a → host → c: were c recorded with a, host would wait for c's replay.
  const std::map<std::string, std::string> types = {
      {"a", "t.capturable"}, {"b", "t.capturable"}, {"c", "t.captureneed"}, {"host", "t.relay"}};
  const Planned split(on_device({{"source", "a"}, {"a", "b"}, {"a", "host"}, {"b", "c.a"}, {"host", "c.b"}}, types),
                      one_device);
  REQUIRE(split.regions().size() == 2);
  CHECK(split.regions()[0].steps == Names{"a", "b"});
  CHECK(split.regions()[1].steps == Names{"c"});

  // The same fan-in from within the device is one region.
  const std::map<std::string, std::string> inside = {
      {"a", "t.capturable"}, {"b", "t.capturable"}, {"c", "t.captureneed"}, {"d", "t.capturable"}};
  const Planned whole(on_device({{"source", "a"}, {"a", "b"}, {"a", "d"}, {"b", "c.a"}, {"d", "c.b"}}, inside),
                      one_device);
  REQUIRE(whole.regions().size() == 1);
  CHECK(whole.regions()[0].steps.size() == 4);
}

TEST_CASE("4.5: an input that is delayed keeps its handler on streams, and the plan says so") {
  Pipeline p = on_device({{"source", "a"}}, {{"a", "t.capturable"}});
  p.graph.edges[0].delay = 1;
  p.graph.edges[0].initial_empty = true;
  const Planned planned(p, one_device);
  CHECK_FALSE(planned.captured("a"));
  CHECK(planned.has_note("a runs on a stream"));
}

TEST_CASE("4.5: all rings that a region touches have one length, and say why they are longer") {
  Pipeline p = on_device({{"source", "a"}, {"a", "b"}}, {{"a", "t.capturable"}, {"b", "t.capturable"}});
  p.clock(graph::ClockMode::free, 0, 1, 3);
  p.add("host", "t.paced").device = "cpu";
  p.connect("source", "host.in");
  p.connect("b", "host.extra").delay = 2; // its copy on the host lives longer, not what the region writes
  p.add("late", "t.paced").device = "sim:0";
  p.connect("b", "late.in");
  p.connect("a", "late.extra").delay = 2; // read on the device two ticks later
  const Planned planned(p, one_device);
  REQUIRE(planned.regions().size() == 1);
  CHECK(planned.regions()[0].slots == 5);
  CHECK(planned.ring("a").reasons == Names{"3 in flight", "2 by delay"});
  CHECK(planned.ring("b").reasons == Names{"3 in flight", "2 to match its region"});
  CHECK(planned.ring("a").length == 5);
  CHECK(planned.ring("b").length == 5);
}

TEST_CASE("5.1: conversions that were inserted are printed, and a plan without one prints none") {
  Pipeline p("p.bgr name=source ! p.rgb name=reader");
  const std::string text = Planned(p).text();
  CHECK(contains(text,
                 "\ninserted\n  reader~rgb8: image.convert bgr8 → rgb8 between source.out and reader.in, because "
                 "reader takes rgb8; on cpu, 64×48, cost not known\n"));
  CHECK(contains(text, "source.out → reader~rgb8.video"));
  p.graph.handlers[0].type = "p.nv12";
  p.graph.handlers[1].type = "p.gray";
  CHECK_FALSE(contains(Planned(p).text(), "inserted"));
}

TEST_CASE("5.1: the order in which edges are declared changes no domain, copy, segment or byte") {
  Pipeline p;
  p.add("source", "t.count");
  for (const char* name : {"a", "b", "c"}) p.add(name, "t.relay");
  p.graph.handlers[2].device = "sim:0";
  p.add("both", "t.need");
  p.connect("source", "a");
  p.connect("a", "b");
  p.connect("a", "c");
  p.connect("b", "both.a");
  p.connect("c", "both.b");
  const plan::Machine machine = machine_of(2, {"cpu", "sim:0"});
  const Planned first(p, machine);
  const auto less = [](const graph::Edge& x, const graph::Edge& y) {
    return std::pair(x.source, x.target) < std::pair(y.source, y.target);
  };
  std::sort(p.graph.edges.begin(), p.graph.edges.end(), less);
  int orders = 0;
  do {
    const Planned other(p, machine);
    CHECK(other.hops() == first.hops());
    CHECK(other.segments() == first.segments());
    CHECK(other.memory() == first.memory());
    ++orders;
  } while (std::next_permutation(p.graph.edges.begin(), p.graph.edges.end(), less));
  CHECK(orders == 120);
}
