// The nodes of handlers that name none; the machines of all nodes as one.
#include "plan/choose_nodes.h"

#include <doctest/doctest.h>

#include "observe/error_codes.h"
#include "plan/prepare.h"
#include "planned.h"
#include "plugin/registry.h"

namespace millrace::plan {
namespace {

using test::machine_of;
using test::Names;
using test::Pipeline;

constexpr double kPictureBytes = 80'000; // of the camera; its header is left aside

// A call of `type` takes so long on a domain of a machine.
BodyCost costs(const std::string& type, double us, const std::string& domain = "cpu") {
  return {type, "", domain, static_cast<uint64_t>(kPictureBytes), us, us, us, 100};
}

Hop link(const std::string& from, const std::string& to, double latency_us, double us_per_byte) {
  return {from, to, HopPrice(latency_us, us_per_byte), {}, from + " to " + to};
}

// Two machines, "edge" and "gpu", and the link between them.
struct TwoNodes {
  Machine edge = machine_of(4), gpu = machine_of(4);
  double latency_us = 100, us_per_byte = 0.01;

  Machine joined() const {
    return join_machines({{"edge", edge}, {"gpu", gpu}}, {link("edge/cpu", "gpu/cpu", latency_us, us_per_byte),
                                                          link("gpu/cpu", "edge/cpu", latency_us, us_per_byte)});
  }
};

// camera → detect → screen; the camera and the screen are on the edge.
Pipeline detection() {
  Pipeline p("t.count name=camera size=10000 ! t.relay name=detect ! t.sink name=screen log=none");
  for (const char* name : {"edge", "gpu"}) {
    p.graph.nodes.emplace_back();
    p.graph.nodes.back().name = name;
  }
  p.graph.handlers[0].node = p.graph.handlers[2].node = "edge";
  return p;
}

struct Choosing {
  // Ten ticks a second, whose latency counts.
  Choosing(const Pipeline& pipeline, const Machine& joined, const OfferedNodes& offered)
      : graph(pipeline.graph), host(plugin::basic_host()) {
    registry.add(test::test_plugin(), "");
    registry.add(test::plan_plugin(), "");
    Prepared prepared = prepare(graph, registry, host);
    Options options;
    options.clock = graph::ClockMode::realtime;
    options.rate = graph::Rational{10, 1};
    chosen = choose_nodes(graph, prepared.facts, LiveTypes(registry, host), joined, options, offered);
  }
  const ChosenNode* find(const std::string& handler) const {
    for (const ChosenNode& one : chosen.handlers)
      if (one.handler == handler) return &one;
    return nullptr;
  }
  std::string node(const std::string& handler) const { return find(handler) ? find(handler)->node : ""; }

  graph::Graph graph;
  plugin::Registry registry;
  mr_host host;
  ChosenNodes chosen;
};

const OfferedNodes kBoth = {{"detect", {"edge", "gpu"}}};

} // namespace

TEST_CASE("7.3: a handler that names no node runs where a tick takes less, by its price and the link's") {
  TwoNodes two;
  two.edge.bodies = {costs("t.relay", 10'000)};
  two.gpu.bodies = {costs("t.relay", 1'000)};
  // There and back is 2 × (latency + bytes × rate), so the gpu gains below 4,500 µs each way.
  for (const double one_way_us : {1'000.0, 4'000.0, 5'000.0, 20'000.0}) {
    CAPTURE(one_way_us);
    two.us_per_byte = (one_way_us - two.latency_us) / kPictureBytes;
    const Choosing choosing(detection(), two.joined(), kBoth);
    REQUIRE(choosing.chosen.handlers.size() == 1);
    CHECK(choosing.node("detect") == (one_way_us < 4'500 ? "gpu" : "edge"));
    CHECK(choosing.find("detect")->domain == "cpu");
    CHECK(choosing.chosen.notes.at(0).starts_with("detect runs on " + choosing.node("detect") + "/cpu: "));
  }
}

TEST_CASE("7.3: a device of another node counts with its way up and down") {
  TwoNodes two;
  two.us_per_byte = 0.001;
  two.edge.bodies = {costs("t.relay", 10'000)};
  two.gpu = machine_of(4, {"sim:0", "cpu"});
  two.gpu.bodies = {costs("t.relay", 9'000), costs("t.relay", 100, "sim:0")};
  two.gpu.hops = {{"cpu", "sim:0", HopPrice(100, 0)}, {"sim:0", "cpu", HopPrice(100, 0)}};
  CHECK(Choosing(detection(), two.joined(), kBoth).find("detect")->domain == "sim:0");
  two.gpu.hops = {{"cpu", "sim:0", HopPrice(6'000, 0)}, {"sim:0", "cpu", HopPrice(6'000, 0)}};
  const Choosing slow(detection(), two.joined(), kBoth);
  CHECK(slow.node("detect") == "gpu");
  CHECK(slow.find("detect")->domain == "cpu");
}

TEST_CASE("7.3: a handler whose price is not known on all nodes that offer it runs beside its first input") {
  TwoNodes two;
  two.gpu.bodies = {costs("t.relay", 1)};
  CHECK(Choosing(detection(), two.joined(), kBoth).node("detect") == "edge");
  Pipeline there = detection();
  there.graph.handlers[0].node = "gpu";
  const Choosing choosing(there, two.joined(), kBoth);
  CHECK(choosing.node("detect") == "gpu");
  CHECK(choosing.find("detect")->reason.find("beside camera") == 0);
}

TEST_CASE("7.3: a handler that one node alone offers runs there") {
  const Choosing choosing(detection(), TwoNodes().joined(), {{"detect", {"gpu"}}});
  CHECK(choosing.node("detect") == "gpu");
}

TEST_CASE("7.3: a device that a handler is pinned to is looked for on the nodes that offer it") {
  TwoNodes two;
  two.gpu = machine_of(1, {"cpu", "sim:0"});
  Pipeline pinned = detection();
  pinned.graph.handlers[1].device = "sim:0";
  const Choosing choosing(pinned, two.joined(), kBoth);
  CHECK(choosing.node("detect") == "gpu");
  CHECK(choosing.find("detect")->domain == "sim:0");
  pinned.graph.handlers[1].device = "sim:7";
  try {
    const Choosing refused(pinned, two.joined(), kBoth);
    FAIL("no node has sim:7");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == code::device_unavailable);
  }
}

TEST_CASE("7.3: a device that a node lacks is for that node to refuse, and others are placed") {
  TwoNodes two;
  two.edge.bodies = {costs("t.relay", 10'000)};
  two.gpu.bodies = {costs("t.relay", 1'000)};
  Pipeline pinned = detection();
  pinned.graph.handlers[2].node = "gpu";
  pinned.graph.handlers[2].device = "cuda:0";
  CHECK(Choosing(pinned, two.joined(), kBoth).node("detect") == "gpu");
}

TEST_CASE("7.2, 7.14: sources, sinks, host objects and loops stay on the coordinator, whoever offers them") {
  TwoNodes two;
  for (const char* type : {"t.count", "t.relay", "t.sink", "t.sum"}) {
    two.edge.bodies.push_back(costs(type, 10'000));
    two.gpu.bodies.push_back(costs(type, 1));
  }
  two.latency_us = two.us_per_byte = 0;
  Pipeline p = detection();
  p.graph.handlers[0].node = p.graph.handlers[2].node = "";
  const OfferedNodes all = {{"camera", {"edge", "gpu"}}, {"detect", {"edge", "gpu"}}, {"screen", {"edge", "gpu"}}};
  const Choosing free(p, two.joined(), all);
  CHECK(free.node("detect") == "gpu");
  CHECK(!free.find("camera"));
  CHECK(!free.find("screen"));

  Pipeline loop = detection();
  loop.graph.handlers[1].type = "t.need";
  loop.graph.edges[0].target_port = "a";
  loop.add("back", "t.relay");
  loop.connect("detect", "back");
  loop.connect("back", "detect.b");
  loop.graph.edges.back().delay = 1;
  loop.graph.edges.back().initial_empty = true;
  CHECK(Choosing(loop, two.joined(), {{"detect", {"edge", "gpu"}}, {"back", {"edge", "gpu"}}}).chosen.handlers.empty());
}

TEST_CASE("the machines of all nodes are one, with full names, and what the coordinator says of a link counts") {
  TwoNodes two;
  two.edge = machine_of(3, {"sim:0"});
  two.gpu = machine_of(8, {"cpu", "sim:0"});
  two.edge.hops = {{"cpu", "sim:0", HopPrice(1, 0)}, {"cpu", "gpu/cpu", HopPrice(7, 0)}};
  two.gpu.hops = {{"sim:0", "cpu", HopPrice(2, 0), {}, "card"}, {"cpu", "edge/cpu", HopPrice(9, 0)}};
  const Machine joined = two.joined();
  Names names, order, hops;
  for (const Domain& domain : joined.domains) names.push_back(domain.node + ":" + domain.name);
  for (const uint32_t d : joined.order) order.push_back(joined.domains[d].name);
  for (const Hop& hop : joined.hops) hops.push_back(hop.from + " → " + hop.to + " " + hop.engine);
  CHECK(names == Names{":edge/cpu", "gpu:gpu/cpu", ":edge/sim:0", "gpu:gpu/sim:0"});
  CHECK(order == Names{"edge/sim:0", "gpu/cpu", "gpu/sim:0"});
  CHECK(joined.workers == 3);
  CHECK(joined.workers_elsewhere.at("gpu") == 8);
  CHECK(hops == Names{"edge/cpu → gpu/cpu edge/cpu to gpu/cpu", "gpu/cpu → edge/cpu gpu/cpu to edge/cpu",
                      "edge/cpu → edge/sim:0 ", "edge/cpu → gpu/cpu ", "gpu/sim:0 → gpu/cpu gpu/card"});
}

} // namespace millrace::plan
