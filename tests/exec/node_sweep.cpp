// The node that a detector is placed on, for links of many bandwidths, and what the run takes there and on the other
// node.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plan/choose_nodes.h"
#include "plan/prepare.h"
#include "plugin/registry.h"
#include "spread.h"
#include "tests/exec/test_handlers.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr int64_t kPictureWords = 640 * 480 * 3 / 8;
constexpr int64_t kEdgeNs = 60 * kMs, kGpuNs = 8 * kMs, kOneWayNs = 1 * kMs;
constexpr double kMegabits[] = {10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 300, 500, 1000, 2000, 5000};

double ns_per_byte(double megabits) { return 8e3 / megabits; }

// camera → overlay → screen on the edge, and the detector that the overlay waits for, wherever it is.
Pipeline watched(graph::ClockMode mode, const std::string& detector, int64_t count) {
  Pipeline p;
  p.clock(mode, mode == graph::ClockMode::realtime ? 5 : 0);
  p.add("camera", "t.count", {{"size", std::to_string(kPictureWords)}, {"count", std::to_string(count)}}).node = "edge";
  p.add("detect", "t.join").node = detector;
  p.add("overlay", "t.need").node = "edge";
  p.add("screen", "t.sink", {{"log", "seen"}}).node = "edge";
  p.connect("camera", "detect");
  p.connect("camera", "overlay.a");
  p.connect("detect", "overlay.b");
  p.connect("overlay", "screen");
  for (const char* name : {"edge", "gpu"}) {
    p.graph.nodes.emplace_back();
    p.graph.nodes.back().name = name;
  }
  return p;
}

plan::Machine machine_with(int64_t detect_ns) {
  plan::Machine machine;
  machine.workers = 4;
  plan::BodyCost cost;
  cost.type = "t.join";
  cost.domain = "cpu";
  cost.bytes = kPictureWords * 8;
  cost.mean_us = cost.p50_us = cost.p99_us = static_cast<double>(detect_ns) / 1000;
  machine.bodies = {cost};
  return machine;
}

// The node on which the plan has the detector.
std::string chosen_node(graph::ClockMode mode, double megabits) {
  Pipeline p = watched(mode, "", 1);
  plugin::Registry registry;
  registry.add(test_plugin(), "");
  const mr_host host = plugin::basic_host();
  plan::Prepared prepared = plan::prepare(p.graph, registry, host);
  const plan::HopPrice price(static_cast<double>(kOneWayNs) / 1000, ns_per_byte(megabits) / 1000);
  const plan::Machine joined = plan::join_machines({{"edge", machine_with(kEdgeNs)}, {"gpu", machine_with(kGpuNs)}},
                                                   {{"edge/cpu", "gpu/cpu", price}, {"gpu/cpu", "edge/cpu", price}});
  plan::Options options;
  options.clock = mode;
  if (mode == graph::ClockMode::realtime) options.rate = graph::Rational{5, 1};
  const plan::ChosenNodes chosen = plan::choose_nodes(p.graph, prepared.facts, plan::LiveTypes(registry, host), joined,
                                                      options, {{"detect", {"edge", "gpu"}}});
  REQUIRE(chosen.handlers.size() == 1);
  return chosen.handlers[0].node;
}

// The time of a tick if the detector is there: its latency under realtime rules, else the run's time by its ticks.
double tick_ms(graph::ClockMode mode, double megabits, const std::string& detector) {
  const bool is_live = mode == graph::ClockMode::realtime;
  const int64_t count = is_live ? 30 : 150;
  Nodes nodes;
  nodes.names = {"edge", "gpu"};
  nodes.link = [&](size_t, size_t) { return Link{kOneWayNs, ns_per_byte(megabits), {}, 0}; };
  Setup setup;
  setup.workers = 4;
  setup.costs_ns = {{"detect", detector == "edge" ? kEdgeNs : kGpuNs}};
  Spread spread(watched(mode, detector, count), nodes, setup);
  const Ran ran = spread.run();
  REQUIRE(ran.error.what == "");
  REQUIRE(ran.seen("seen").size() > 0);
  const std::vector<PathReport>& paths = ran.report.paths;
  const auto to_screen =
      std::find_if(paths.begin(), paths.end(), [](const PathReport& path) { return path.sink == "screen"; });
  REQUIRE(to_screen != paths.end());
  return is_live ? to_screen->p50_us / 1000 : static_cast<double>(spread.now_ns()) / 1e6 / static_cast<double>(count);
}

} // namespace

TEST_CASE("7.3: where a handler runs flips with the link's bandwidth, and that side is within 5 % of the better one") {
  nlohmann::json rows = nlohmann::json::array();
  for (const graph::ClockMode mode : {graph::ClockMode::realtime, graph::ClockMode::free}) {
    CAPTURE(static_cast<int>(mode));
    int flips = 0;
    std::string before = "edge";
    for (const double megabits : kMegabits) {
      CAPTURE(megabits);
      const std::string chosen = chosen_node(mode, megabits);
      const double at_edge = tick_ms(mode, megabits, "edge"), at_gpu = tick_ms(mode, megabits, "gpu");
      CAPTURE(at_edge);
      CAPTURE(at_gpu);
      CHECK((chosen == "edge" ? at_edge : at_gpu) <= 1.05 * std::min(at_edge, at_gpu));
      flips += chosen != before;
      before = chosen;
      rows.push_back({{"clock", mode == graph::ClockMode::free ? "free" : "realtime"},
                      {"megabits", megabits},
                      {"edge_ms", at_edge},
                      {"gpu_ms", at_gpu},
                      {"chosen", chosen}});
    }
    CHECK(flips == 1);
    CHECK(before == "gpu");
  }
  if (const char* const path = std::getenv("MILLRACE_SWEEP")) std::ofstream(path) << rows.dump(1) << "\n";
}
