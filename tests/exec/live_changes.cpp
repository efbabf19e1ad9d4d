// Live changes of handlers on several nodes, over links that are slow and cut.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "exec/crossing.h"
#include "exec/run.h"
#include "graph/unfold.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "spread.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Puts the named handlers on the node.
void place_on(Pipeline& pipeline, const std::string& node, const std::vector<std::string>& handlers) {
  for (const std::string& name : handlers)
    for (graph::Handler& handler : pipeline.graph.handlers)
      if (handler.name == name) handler.node = node;
}

// Three relays on three nodes; the source and the sink are on the first.
Pipeline row_of_three() {
  Pipeline p(
      "t.count name=source count=60 ! t.relay name=one ! t.relay name=two ! t.relay name=three ! "
      "t.sink name=sink log=seen");
  place_on(p, "home", {"source", "three", "sink"});
  place_on(p, "gpu", {"one"});
  place_on(p, "cloud", {"two"});
  return p;
}

Nodes three_nodes(const std::vector<std::pair<int64_t, int64_t>>& cuts, int64_t away_after_ns = 0) {
  Nodes nodes;
  nodes.names = {"home", "gpu", "cloud"};
  nodes.link = [=](size_t from, size_t to) {
    const bool is_cut = from + to == 1; // between home and gpu
    return Link{static_cast<int64_t>(1 + from * 3 + to) * kMs, 10, is_cut ? cuts : decltype(cuts){}, away_after_ns};
  };
  return nodes;
}

const std::vector<exec::ParamChange> kOfAll = {
    {"one", "add", "1000"}, {"two", "add", "20000"}, {"three", "add", "300000"}};

} // namespace

TEST_CASE("7.15: changes of handlers on three nodes take effect on the tick that their home says, on all of them") {
  for (const int64_t at_ms : {0, 5, 20, 33}) {
    CAPTURE(at_ms);
    Setup setup;
    setup.costs_ns = {{"source", 1 * kMs}};
    Spread spread(row_of_three(), three_nodes({{10 * kMs, 70 * kMs}}), setup);
    std::vector<exec::TickOfClock> first, second;
    spread.time().schedule(at_ms * kMs, [&] { spread.live(0).set(kOfAll, [&](const auto& ticks) { first = ticks; }); });
    spread.time().schedule(90 * kMs, [&] {
      spread.live(0).set({{"two", "add", "40000"}}, [&](const auto& ticks) { second = ticks; });
    });
    const Ran ran = spread.run();
    REQUIRE(ran.error.what == "");
    REQUIRE(first.size() == 1);
    REQUIRE(second.size() == 1);
    REQUIRE(first[0].tick < second[0].tick);
    const std::vector<Seen> seen = ran.seen("seen");
    REQUIRE(seen.size() == 60);
    for (const Seen& one : seen) {
      const int64_t added = one.index < first[0].tick ? 0 : one.index < second[0].tick ? 321'000 : 341'000;
      REQUIRE(one.values[0] == static_cast<int64_t>(one.index) + added);
    }
  }
}

TEST_CASE("7.15: a node that was away takes the changes of that time before its next tick") {
  Pipeline p = row_of_three();
  p.clock(graph::ClockMode::realtime, 100);
  Spread spread(p, three_nodes({{150 * kMs, 350 * kMs}}, 50 * kMs), {});
  uint64_t tick = 0;
  for (const auto& [at_ms, add] : {std::pair(220, "7"), {260, "1000"}})
    spread.time().schedule(at_ms * kMs, [&, text = std::string(add)] {
      spread.live(0).set({{"one", "add", text}}, [&](const auto& ticks) { tick = ticks.at(0).tick; });
    });
  const Ran ran = spread.run();
  REQUIRE(ran.error.what == "");
  size_t before = 0, after = 0;
  for (const Seen& one : ran.seen("seen")) {
    ++(one.index < tick ? before : after);
    REQUIRE(one.values[0] == static_cast<int64_t>(one.index) + (one.index < tick ? 0 : 1000));
  }
  CHECK(before > 0);
  CHECK(after > 0);
}

TEST_CASE("B16: every node knows where the group of a value of `batch:` is, and which of them can be changed") {
  Pipeline p;
  p.graph = graph::unfold(graph::parse_yaml(R"(version: 1
nodes: { home: {}, gpu: {} }
streams: { all: { items: { a: {}, b: {} } } }
clocks: { all: { mode: realtime, rate: 100 }, main: { mode: realtime, rate: 100 } }
handlers:
  one:   { type: t.count, count: 20, clock: main, node: home }
  there: { type: t.sink, input: one, log: one, node: gpu }
  many:  { type: t.count, count: 20, for_each: all, node: gpu }
  model: { type: t.relay, input: many, node: gpu, batch: { budget: 100ms } }
  sinks: { type: t.sink, for_each: all, input: model, log: "{stream}", node: gpu }
)",
                                            "groups.yaml"));
  Nodes nodes;
  nodes.names = {"home", "gpu"};
  nodes.link = [](size_t, size_t) { return Link{1 * kMs, 0, {}, 0}; };
  Spread spread(p, nodes);
  std::vector<exec::TickOfClock> taken;
  spread.time().schedule(20 * kMs, [&] {
    for (const size_t node : {0u, 1u}) {
      CAPTURE(node);
      const auto code_of = [&](const std::string& param) {
        try {
          (void)spread.live(node).by_home({{"model", param, "1"}});
        } catch (const Failure& failure) {
          return failure.error().code;
        }
        return 0;
      };
      const std::vector<exec::HomeChanges> homes = spread.live(node).by_home({{"model", "batch.budget", "40ms"}});
      REQUIRE(homes.size() == 1);
      CHECK(homes[0].node == 1);
      CHECK(code_of("batch.budgte") == code::unknown_parameter);
      CHECK(code_of("batch.size") == code::parameter_not_live); // it learns
    }
    spread.live(1).set({{"model", "batch.budget", "40ms"}}, [&](const auto& ticks) { taken = ticks; });
  });
  const Ran ran = spread.run();
  REQUIRE(ran.error.what == "");
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].tick != exec::kNoTickTook);
  const Report report = spread.report_of(1);
  REQUIRE(report.groups.size() == 1);
  CHECK(report.groups[0].budget_ms == doctest::Approx(40));
}

TEST_CASE("7.15: only the home of a clock gives changes their tick, and every node knows where that is") {
  Spread spread(row_of_three(), three_nodes({}));
  std::vector<std::string> refusals;
  spread.time().schedule(0, [&] {
    for (const size_t node : {0u, 1u, 2u}) {
      const std::vector<exec::HomeChanges> homes = spread.live(node).by_home(kOfAll);
      REQUIRE(homes.size() == 1);
      CHECK(homes[0].node == 0);
      CHECK(homes[0].changes.size() == 3);
    }
    CHECK(spread.live(0).nodes_of(kOfAll) == std::vector<std::string>{"gpu", "cloud"});
    try {
      spread.live(1).set(kOfAll);
    } catch (const Failure& failure) {
      refusals.push_back(failure.error().notes.at(0));
    }
  });
  CHECK(spread.run().ok);
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0] == "its clock begins its ticks on node \"home\"");
}
