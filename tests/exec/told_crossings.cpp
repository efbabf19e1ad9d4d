// Crossings of a run over nodes, in its report and in the lines about a standstill.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "observe/error_codes.h"
#include "observe/report.h"
#include "spread.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// source and h1 at home, h2 on the other node, sink at home again.
Ran run_there_and_back(Pipeline pipeline, const Link& link) {
  for (graph::Handler& handler : pipeline.graph.handlers)
    if (handler.name == "h2") handler.node = "gpu";
  Nodes nodes;
  nodes.names = {"home", "gpu"};
  nodes.link = [=](size_t, size_t) { return link; };
  Ran ran = Spread(pipeline, nodes).run();
  REQUIRE(ran.error.what == "");
  return ran;
}

} // namespace

TEST_CASE("a run over nodes reports the parcels and bytes of each crossing") {
  const Ran ran = run_there_and_back(line({"t.relay", "t.relay"}, "seen", 20), {3 * kMs, 0, {}});
  const std::vector<CrossingReport>& crossings = ran.report.crossings;
  REQUIRE(crossings.size() == 2);
  CHECK(crossings[0].name == "main/0>1");
  CHECK(crossings[0].departs);
  CHECK(crossings[1].name == "main/1>2");
  CHECK(!crossings[1].departs);
  for (const CrossingReport& crossing : crossings) {
    CHECK(crossing.node == "gpu");
    CHECK(crossing.parcels == 20);
    CHECK(crossing.bytes == 20 * sizeof(int64_t));
    CHECK(crossing.left_out.empty());
  }
  const auto json = nlohmann::json::parse(to_json(ran));
  CHECK(json["crossings"][1] == nlohmann::json{{"name", "main/1>2"},
                                               {"direction", "from"},
                                               {"node", "gpu"},
                                               {"parcels", 20},
                                               {"bytes", 160},
                                               {"lost", 0},
                                               {"left_out", nlohmann::json::object()}});
}

TEST_CASE("ticks that a cut link left out are in the report of their crossing, by cause") {
  Pipeline pipeline = line({"t.relay", "t.relay"}, "seen", 60);
  pipeline.clock(graph::ClockMode::realtime, 100);
  const Ran ran = run_there_and_back(pipeline, {1 * kMs, 0, {{100 * kMs, 400 * kMs}}});
  const CrossingReport& there = ran.report.crossings.at(0);
  REQUIRE(there.left_out.size() == 1);
  CHECK(there.left_out.at("link") > 20);
  CHECK(there.parcels + there.left_out.at("link") == 60);
}

TEST_CASE("a run on one machine reports no crossings") {
  const Ran ran = run(line({"t.relay"}, "seen", 3));
  CHECK(ran.report.crossings.empty());
  CHECK(!nlohmann::json::parse(to_json(ran)).contains("crossings"));
}

TEST_CASE("a run that stands still because no link brings its ticks says which crossing it waits for") {
  Setup setup;
  setup.virtual_time = true;
  setup.nodes = {"home", "gpu"};
  const auto stands_still = [&](uint32_t node, const std::string& why) {
    Pipeline pipeline("t.count name=camera count=9 ! t.relay name=detect ! t.need name=overlay ! t.sink log=seen");
    pipeline.graph.handlers[1].node = "gpu";
    pipeline.graph.edges[1].target_port = "b";
    pipeline.connect("camera", "overlay.a");
    setup.node = node;
    const Ran ran = Compiled(pipeline, setup).run();
    CAPTURE(ran.error.what);
    CHECK(ran.error.code == code::no_progress);
    CHECK(ran.error.what.find(why) != std::string::npos);
  };
  stands_still(0, "join of stage 2 waits for main/1>2 from gpu (tick 0)");
  stands_still(1, "from home waits for main/0>1 (tick 0)");
}
