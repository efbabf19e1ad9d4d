// Graphs over nodes: what each node's plan has, what crosses, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "observe/error_codes.h"
#include "over_nodes.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// "home > gpu main/0>1 departs", a text each.
Names crossings(const plan::Plan& plan) {
  Names names;
  for (const plan::CrossingPlan& crossing : plan.crossings)
    names.push_back(crossing.name + (crossing.departs ? " to " : " from ") + crossing.node);
  return names;
}

Names handlers_here(const plan::Plan& plan) {
  Names names;
  for (const plan::HandlerPlan& handler : plan.handlers)
    if (handler.step != plan::kNone) names.push_back(handler.name);
  return names;
}

} // namespace

TEST_CASE("7.3: a plan has the steps of its own node, and the crossings of both nodes are the same") {
  const Pipeline p = overlay();
  const Planned home(p, {}, on(0)), gpu(p, {}, on(1));
  CHECK(handlers_here(home.plan()) == Names{"camera", "overlay", "screen"});
  CHECK(handlers_here(gpu.plan()) == Names{"detect"});
  CHECK(crossings(home.plan()) == Names{"main/0>1 to gpu", "main/1>2 from gpu"});
  CHECK(crossings(gpu.plan()) == Names{"main/0>1 from home", "main/1>2 to home"});
}

TEST_CASE("7.3: a graph without nodes, or with one, has neither far paces nor crossings") {
  Pipeline p("t.count name=camera ! t.relay name=detect ! t.sink name=screen log=seen");
  CHECK(Planned(p).plan().crossings.empty());
  CHECK(Planned(p, {}, on(0, {"only"})).plan().paces.size() == 1);
}

TEST_CASE("a crossing leaves ticks out under realtime rules, unless one of its edges asks for all of them") {
  // The delivery of the crossing there and of the one back. The camera has two readers there, which share one.
  const auto deliveries = [](graph::ClockMode mode, const Names& reliable, const Names& live = {}) {
    Pipeline p("t.count name=camera ! t.relay name=detect ! t.need name=overlay ! t.sink name=screen log=seen");
    p.graph.edges[1].target_port = "b";
    p.connect("camera", "overlay.a");
    p.add("track", "t.sink", {{"log", "track"}});
    p.connect("camera", "track");
    put(p, "gpu", {"detect", "track"});
    p.clock(mode, mode == graph::ClockMode::realtime ? 30 : 0);
    const auto is_in = [](const Names& names, const graph::Edge& edge) {
      return std::find(names.begin(), names.end(), edge.source + ">" + edge.target) != names.end();
    };
    for (graph::Edge& edge : p.graph.edges) {
      if (is_in(reliable, edge)) edge.delivery = graph::Delivery::reliable;
      if (is_in(live, edge)) edge.delivery = graph::Delivery::live;
    }
    const Planned home(p, {}, on(0)), gpu(p, {}, on(1));
    REQUIRE(home.plan().crossings.size() == 2);
    REQUIRE(gpu.plan().crossings.size() == 2);
    std::map<std::string, std::string> words;
    for (const plan::CrossingPlan& crossing : home.plan().crossings)
      words[crossing.departs ? "there" : "back"] = crossing.delivery == graph::Delivery::live ? "live" : "reliable";
    for (size_t i = 0; i < home.plan().crossings.size(); ++i) {
      CHECK(home.plan().crossings[i].name == gpu.plan().crossings[i].name);
      CHECK(home.plan().crossings[i].delivery == gpu.plan().crossings[i].delivery);
    }
    return words["there"] + " " + words["back"];
  };
  CHECK(deliveries(graph::ClockMode::realtime, {}) == "live live");
  CHECK(deliveries(graph::ClockMode::realtime, {"camera>detect"}) == "reliable live");
  CHECK(deliveries(graph::ClockMode::realtime, {"camera>track"}) == "reliable live");
  CHECK(deliveries(graph::ClockMode::realtime, {"detect>overlay"}) == "live reliable");
  CHECK(deliveries(graph::ClockMode::realtime, {"camera>overlay"}) == "live live"); // it goes over no link
  CHECK(deliveries(graph::ClockMode::realtime, {"camera>track"}, {"camera>detect"}) == "reliable live");
  CHECK(deliveries(graph::ClockMode::free, {}) == "reliable reliable");
  CHECK(deliveries(graph::ClockMode::free, {}, {"camera>detect", "detect>overlay"}) == "reliable reliable");
}

TEST_CASE("7.6: a feed has a place for each tick that may be pending before its pace") {
  Pipeline p("t.count name=camera ! t.late name=answer ! t.need name=both ! t.sink name=screen log=seen");
  p.graph.edges[1].target_port = "b";
  p.connect("camera", "both.a");
  put(p, "gpu", {"answer"});
  const Planned home(p, {}, on(0));
  for (const plan::Channel& channel : home.plan().channels)
    if (channel.far && plan::is_whole(channel)) CHECK(channel.depth == 1 + 8); // camera to both, beside the way
}

TEST_CASE("7.6: a crossing has a place for each tick of a round trip, if the clock has a rate") {
  const auto depth = [](int64_t rate, int64_t round_trip_ms) {
    Pipeline p = overlay();
    p.clock(graph::ClockMode::realtime, rate);
    plan::Options options = on(0);
    options.round_trip_ns = round_trip_ms * kMs;
    const Planned home(p, {}, options);
    for (const plan::Channel& channel : home.plan().channels) CHECK(channel.depth == home.plan().channels[0].depth);
    return home.plan().channels[0].depth;
  };
  CHECK(depth(30, 0) == 2);
  CHECK(depth(100, 38) == 5);    // 40 ms with what waking threads takes: 4 ticks, and one more
  CHECK(depth(100, 1000) == 64); // memory has an end
}

TEST_CASE("7.14: a loop over a link is refused, with both nodes and what helps") {
  Pipeline p("t.count name=source ! t.paced name=detect ! t.relay name=track ! t.sink name=sink log=none");
  graph::Edge& loop = p.connect("track", "detect.extra");
  loop.delay = 1;
  loop.initial_empty = true;
  CHECK(refusal(p, {}, on(0)) == 0);
  put(p, "gpu", {"track"});
  const Error error = error_of(p, {}, on(0));
  CHECK(error.code == code::loop_over_nodes);
  CHECK(error.notes.size() == 2);
  CHECK(error.notes[0].find(" is on ") != std::string::npos);
}

TEST_CASE("7.2: the sources of a clock are on one node") {
  Pipeline p("t.count name=left ! t.need name=both ! t.sink name=sink log=none");
  p.add("right", "t.count");
  p.graph.edges[0].target_port = "a";
  p.connect("right", "both.b");
  CHECK(refusal(p, {}, on(0)) == 0);
  put(p, "gpu", {"right"});
  CHECK(refusal(p, {}, on(0)) == code::clock_on_two_nodes);
  CHECK(refusal(p, {}, on(1)) == code::clock_on_two_nodes);
}

TEST_CASE("7.2: a node that the pipeline does not have is refused, with the nearest one") {
  Pipeline p("t.count name=source ! t.sink name=sink log=none");
  put(p, "gpy", {"sink"});
  const Error error = error_of(p, {}, on(0));
  CHECK(error.code == code::unknown_node);
  CHECK(error.nearest == "gpu");
}

TEST_CASE("7.2: a clock may name its home, and no other node than that of its sources") {
  Pipeline p("t.count name=source ! t.relay name=relay ! t.sink name=sink log=none");
  p.clock(graph::ClockMode::free);
  put(p, "gpu", {"source"});
  p.graph.clocks[0].node = "gpu";
  CHECK(refusal(p, {}, on(0)) == 0);
  p.graph.clocks[0].node = "home";
  const Error error = error_of(p, {}, on(1));
  CHECK(error.code == code::clock_on_two_nodes);
  CHECK(error.edit == "node: gpu");
  p.graph.clocks[0].node = "gqu";
  CHECK(error_of(p, {}, on(0)).code == code::unknown_node);
  CHECK(error_of(p, {}, on(0)).nearest == "gpu");
  CHECK(refusal(p) == 0); // one machine runs it all
}

TEST_CASE("A host object is read on its own node, and MR0811 refuses a reader on another one, with both ends") {
  Pipeline p("t.count name=camera ! p.object name=track ! p.objectsink name=show");
  put(p, "gpu", {"track", "show"});
  CHECK(refusal(p, {}, on(0)) == 0);
  CHECK(refusal(p, {}, on(1)) == 0);
  put(p, "home", {"show"});
  CHECK(refusal(p) == 0); // one machine runs it all
  for (const uint32_t node : {0u, 1u}) {
    try {
      Planned(p, {}, on(node));
      FAIL("a pointer does not cross");
    } catch (const Failure& failure) {
      CHECK(failure.error().code == code::object_over_nodes);
      CHECK(failure.error().what ==
            "track.out does not cross to home: it is a host object, a pointer into its process");
      CHECK(failure.error().notes == Names{"track is on gpu", "show is on home"});
    }
  }
}

TEST_CASE("7.2: a clock without sources begins where it says, also if none of its handlers is there") {
  Pipeline p;
  p.clock(graph::ClockMode::source);
  p.graph.clocks.back().name = "camera";
  p.clock(graph::ClockMode::free, 10);
  p.graph.clocks.back().name = "slow";
  p.add("source", "t.count", {{"rate", "30"}, {"count", "9"}}).clock = "camera";
  p.add("first", "t.join").clock = "slow";
  p.connect("source", "first.in", graph::Policy::latest);
  put(p, "gpu", {"first"});
  const auto home_of_slow = [&] {
    const Planned planned(p, {}, on(0));
    for (const plan::Pace& pace : planned.compiled().paces)
      if (pace.kind == plan::PaceKind::clock && planned.compiled().clocks[pace.clock].name == "slow") return pace.node;
    return plan::kNone;
  };
  CHECK(home_of_slow() == 1);
  p.graph.clocks.back().node = "home";
  CHECK(home_of_slow() == 0);
}

TEST_CASE("8.11: a clock without sources may be on another node than its leader, where its queues are too") {
  Pipeline p;
  p.clock(graph::ClockMode::source);
  p.graph.clocks.back().name = "camera";
  p.clock(graph::ClockMode::free, 10);
  p.graph.clocks.back().name = "slow";
  p.add("source", "t.count", {{"rate", "30"}, {"count", "9"}}).clock = "camera";
  for (const char* name : {"first", "second"}) p.add(name, "t.join").clock = "slow";
  p.connect("source", "first.in", graph::Policy::latest);
  graph::Edge& queue = p.connect("source", "second.in", graph::Policy::queue);
  queue.full = graph::Full::drop_oldest;
  p.connect("first", "second.in");
  put(p, "gpu", {"first", "second"});
  CHECK(refusal(p, {}, on(0)) == 0);
  put(p, "home", {"second"});
  CHECK(refusal(p, {}, on(0)) == code::not_over_nodes);
}
