// A node's plan as people and tools read it: what runs here and elsewhere, and what crosses. As ../cli/plans, to the
// letter.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "over_nodes.h"
#include "plan/print.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;
using nlohmann::json;

namespace {

// The overlay takes the latest detection.
Pipeline latest() {
  Pipeline p = overlay();
  p.clock(graph::ClockMode::realtime, 30);
  p.graph.edges[1].policy = graph::Policy::latest;
  p.graph.edges[1].initial_empty = true;
  return p;
}

// A clock without sources on the other node, led by the camera's.
Pipeline two_clocks() {
  Pipeline p;
  p.clock(graph::ClockMode::source);
  p.graph.clocks.back().name = "fast";
  p.clock(graph::ClockMode::free, 10);
  p.graph.clocks.back().name = "slow";
  p.add("camera", "t.count", {{"rate", "30"}, {"count", "9"}}).clock = "fast";
  for (const char* name : {"first", "second"}) p.add(name, "t.join").clock = "slow";
  p.connect("camera", "first.in", graph::Policy::latest);
  p.connect("first", "second.in");
  put(p, "gpu", {"first", "second"});
  return p;
}

// With what each handler costs.
plan::Options costed(uint32_t node) {
  plan::Options options = on(node);
  for (const auto& [name, us] : {std::pair{"camera", 10}, {"detect", 900}, {"overlay", 5}, {"first", 7}, {"second", 8}})
    options.costs_ns[name] = us * 1000;
  return options;
}

} // namespace

TEST_CASE("the home's plan says what goes to the other node, what comes back, and where both are joined") {
  CHECK(Planned(overlay(), {}, costed(0)).text() ==
        R"(pipeline: 4 handlers, 3 of them on this node (home); 4 edges, 2 segments on 1 thread
latency on this node, without links: at least 15 µs predicted, 1 cost not known

clocks
  main  free, begins on home; window 1: 1 in flight

segments
  0  cpu, worker 0
    camera   t.count  int64[1], about 10 µs
    + to gpu: main/0>1
    + to stage 2: camera.out, at most 2 ticks wait
  1  cpu, worker 0, stage 2 of clock main, window 1
    + join of stage 2: camera.out from stage 0, main/1>2 from gpu
    overlay  t.need   int64[1], about 5 µs
    screen   t.sink

crossings
  main/0>1  to gpu    camera.out int64[1], at most 8 B a tick; depth 2; reliable; joined by stage 1
  main/1>2  from gpu  detect.out int64[1], at most 8 B a tick; depth 2; reliable; joined by stage 2

on other nodes
  gpu: detect (t.relay)

edges
  camera.out → detect.in      sync, over main/0>1
  detect.out → overlay.b      sync, over main/1>2
  overlay.out → screen.in[0]  sync
  camera.out → overlay.a      sync

memory
  cpu  6.5 KiB
    camera.out           8 × 512 B: 1 in flight + 3 for the link to gpu + 4 held by join of stage 2
    overlay.out          1 × 512 B: 1 in flight
    detect.out from gpu  4 × 512 B: 1 in flight + 3 on their way from gpu
)");
}

TEST_CASE("the other node's plan says what comes from the home and what goes back") {
  CHECK(Planned(overlay(), {}, costed(1)).text() ==
        R"(pipeline: 4 handlers, 1 of them on this node (gpu); 4 edges, 1 segment on 1 thread
latency on this node, without links: 900 µs predicted

clocks
  main  free, begins on home

segments
  0  cpu, worker 0, stage 1 of clock main, window 1
    + from home: main/0>1
    detect   t.relay  int64[1], about 900 µs
    + to home: main/1>2

crossings
  main/0>1  from home  camera.out int64[1], at most 8 B a tick; depth 2; reliable; joined by stage 1
  main/1>2  to home    detect.out int64[1], at most 8 B a tick; depth 2; reliable; joined by stage 2

on other nodes
  home: camera (t.count), overlay (t.need), screen (t.sink)

edges
  camera.out → detect.in      sync, over main/0>1
  detect.out → overlay.b      sync, over main/1>2
  overlay.out → screen.in[0]  sync, on other nodes
  camera.out → overlay.a      sync, on other nodes

memory
  cpu  4.0 KiB
    detect.out            4 × 512 B: 1 in flight + 3 for the link to home
    camera.out from home  4 × 512 B: 1 in flight + 3 on their way from home
)");
}

TEST_CASE("at home a value that latest reads comes with ticks of their own, and is posted") {
  CHECK(Planned(latest(), {}, costed(0)).text() ==
        R"(pipeline: 4 handlers, 3 of them on this node (home); 4 edges, 3 segments on 1 thread
latency on this node, without links: at least 15 µs predicted, 1 cost not known

clocks
  main  realtime, 30/s, begins on home; window 2: 2 in flight

segments
  0  cpu, worker 0
    camera   t.count  int64[1], about 10 µs
    + to gpu: main/0>1
  1  cpu, worker 0, ticks of clock main, window 1
    + from gpu: main/2>3
    + post detect.out
  2  cpu, worker 0
    + latest detect.out: once for all its readers
    overlay  t.need   int64[1], about 5 µs
    screen   t.sink

crossings
  main/0>1  to gpu    camera.out int64[1], at most 8 B a tick; depth 2; live; joined by stage 1
  main/2>3  from gpu  detect.out int64[1], at most 8 B a tick; depth 2; live; posted for overlay.b (latest)

on other nodes
  gpu: detect (t.relay)

edges
  camera.out → detect.in      sync, over main/0>1
  detect.out → overlay.b      latest, over main/2>3
  overlay.out → screen.in[0]  sync
  camera.out → overlay.a      sync

memory
  cpu  8.5 KiB
    camera.out           5 × 512 B: 2 in flight + 3 for the link to gpu
    overlay.out          2 × 512 B: 2 in flight
    detect.out from gpu  10 × 512 B: 1 in flight + 6 held by latest detect.out + 3 on their way from gpu
)");
}

TEST_CASE("on the other node a handler that no tick waits for passes ticks by") {
  CHECK(Planned(latest(), {}, costed(1)).text() ==
        R"(pipeline: 4 handlers, 1 of them on this node (gpu); 4 edges, 2 segments on 1 thread
latency on this node, without links: 900 µs predicted

clocks
  main  realtime, 30/s, begins on home

segments
  0  cpu, worker 0, stage 1 of clock main, window 1
    + from home: main/0>1
    + gate of detect: a tick that finds it busy passes by
  1  cpu, worker 0, lags its clock by at most 1 tick
    + entry of detect
    detect   t.relay  int64[1], about 900 µs
    + to home: main/2>3

crossings
  main/0>1  from home  camera.out int64[1], at most 8 B a tick; depth 2; live; joined by stage 1
  main/2>3  to home    detect.out int64[1], at most 8 B a tick; depth 2; live; posted for overlay.b (latest)

on other nodes
  home: camera (t.count), overlay (t.need), screen (t.sink)

edges
  camera.out → detect.in      sync, read asynchronously, over main/0>1
  detect.out → overlay.b      latest, over main/2>3
  overlay.out → screen.in[0]  sync, on other nodes
  camera.out → overlay.a      sync, on other nodes

memory
  cpu  5.5 KiB
    detect.out            4 × 512 B: 1 in flight + 3 for the link to home
    camera.out from home  7 × 512 B: 1 in flight + 3 held by entry of detect + 3 on their way from home
)");
}

TEST_CASE("the home of a leader tells another clock how far it is, without values") {
  CHECK(Planned(two_clocks(), {}, costed(0)).text() ==
        R"(pipeline: 3 handlers, 1 of them on this node (home); 2 edges, 2 segments on 1 thread
latency on this node, without links: 10 µs predicted

clocks
  fast  source, 30/s, ticks from camera, begins on home; window 1: 1 in flight
  slow  free, 10/s, led by fast, begins on gpu

segments
  0  cpu, worker 0
    camera  t.count  int64[1], about 10 µs
    + to gpu: fast/0>3
  1  cpu, worker 0
    + to gpu: fast/0>4

crossings
  fast/0>3  to gpu  camera.out int64[1], at most 8 B a tick; depth 2; reliable; posted for first.in[0] (latest)
  fast/0>4  to gpu  ticks without values; depth 2; reliable; tells clock slow how far clock fast is

on other nodes
  gpu: first (t.join), second (t.join)

edges
  camera.out → first.in[0]  latest, over fast/0>3
  first.out → second.in[0]  sync, on other nodes

memory
  cpu  2.0 KiB
    camera.out  4 × 512 B: 1 in flight + 3 for the link to gpu
)");
}

TEST_CASE("a clock without sources begins on another node than its leader") {
  CHECK(Planned(two_clocks(), {}, costed(1)).text() ==
        R"(pipeline: 3 handlers, 2 of them on this node (gpu); 2 edges, 5 segments on 1 thread
latency on this node, without links: 15 µs predicted

clocks
  fast  source, 30/s, begins on home
  slow  free, 10/s, led by fast, begins on gpu; window 1: 1 in flight

segments
  0  cpu, worker 0, ticks of clock fast, window 1
    + from home: fast/0>3
    + post camera.out
  1  cpu, worker 0, ticks of clock fast, window 1
    + from home: fast/0>4
  2  cpu, worker 0
    + gate of first: a tick that finds it busy passes by
  3  cpu, worker 0, lags its clock by at most 1 tick
    + entry of first
  4  cpu, worker 0, lags its clock by at most 1 tick
    + latest camera.out: once for all its readers
    first   t.join   int64[4], about 7 µs
    second  t.join   int64[4], about 8 µs

crossings
  fast/0>3  from home  camera.out int64[1], at most 8 B a tick; depth 2; reliable; posted for first.in[0] (latest)
  fast/0>4  from home  ticks without values; depth 2; reliable; tells clock slow how far clock fast is

on other nodes
  home: camera (t.count)

edges
  camera.out → first.in[0]  latest, over fast/0>3
  first.out → second.in[0]  sync

memory
  cpu  5.0 KiB
    first.out             1 × 512 B: 1 in flight
    second.out            1 × 512 B: 1 in flight
    camera.out from home  8 × 512 B: 1 in flight + 4 held by latest camera.out + 3 on their way from home
)");
}

TEST_CASE("the JSON of a node's plan has its crossings, and no segment for handlers of other nodes") {
  const auto crossing = [](const char* name, const char* direction, const char* node, const char* output,
                           const char* use) {
    return json{{"name", name},
                {"direction", direction},
                {"node", node},
                {"depth", 2},
                {"delivery", "reliable"},
                {"values", {{{"output", output}, {"format", "int64[1]"}, {"bytes", 8}}}},
                {"use", use}};
  };
  const json home = json::parse(plan::print_json(Planned(overlay(), {}, on(0)).plan()));
  CHECK(home["node"] == "home");
  CHECK(home["nodes"] == json{"home", "gpu"});
  CHECK(home["crossings"] == json{crossing("main/0>1", "to", "gpu", "camera.out", "joined by stage 1"),
                                  crossing("main/1>2", "from", "gpu", "detect.out", "joined by stage 2")});
  CHECK(home["handlers"]["detect"]["segment"].is_null());
  CHECK(home["handlers"]["detect"]["node"] == "gpu");
  CHECK(home["handlers"]["overlay"]["segment"] == 1);
  CHECK(home["segments"][0]["steps"] == json{"camera", "to gpu", "to stage 2"});
  CHECK(home["rings"][2]["output"] == "detect.out");
  const json gpu = json::parse(plan::print_json(Planned(overlay(), {}, on(1)).plan()));
  CHECK(gpu["crossings"] == json{crossing("main/0>1", "from", "home", "camera.out", "joined by stage 1"),
                                 crossing("main/1>2", "to", "home", "detect.out", "joined by stage 2")});
  CHECK(gpu["segments"][0]["steps"] == json{"from home", "detect", "to home"});
}

TEST_CASE("the JSON of a plan for one machine has neither nodes nor crossings") {
  const json alone = json::parse(plan::print_json(Planned(overlay()).plan()));
  for (const char* key : {"node", "nodes", "crossings"}) CHECK(!alone.contains(key));
  CHECK(!alone["handlers"]["detect"].contains("node"));
}

TEST_CASE("the DOT of the home's plan has a box for the other node, and arrows to it and from it") {
  CHECK(plan::print_dot(Planned(overlay(), {}, on(0)).plan()) == R"(digraph "" {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_0 {
    label="segment 0 on cpu";
    step0 [label="camera\nt.count"];
    step1 [label="to gpu", style=dashed];
    step2 [label="to stage 2", style=dashed];
  }
  subgraph cluster_1 {
    label="segment 1 on cpu";
    step3 [label="join of stage 2", style=dashed];
    step4 [label="overlay\nt.need"];
    step5 [label="screen\nt.sink"];
  }
  node1 [label="gpu\ndetect", shape=box3d];
  step0 -> step1 [label="out"];
  step0 -> step2 [label="out"];
  step3 -> step4 [label="out"];
  step3 -> step4 [label="out"];
  step4 -> step5 [label="out"];
  step2 -> step3 [style=dotted];
  step1 -> node1 [label="main/0>1\ncamera.out", style=dashed];
  node1 -> step3 [label="main/1>2\ndetect.out", style=dashed];
}
)");
}

TEST_CASE("the DOT of the other node's plan has a box for the home") {
  CHECK(plan::print_dot(Planned(overlay(), {}, on(1)).plan()) == R"(digraph "" {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_0 {
    label="segment 0 on cpu";
    step0 [label="from home", style=dashed];
    step1 [label="detect\nt.relay"];
    step2 [label="to home", style=dashed];
  }
  node0 [label="home\ncamera\noverlay\nscreen", shape=box3d];
  step0 -> step1 [label="out"];
  step1 -> step2 [label="out"];
  node0 -> step0 [label="main/0>1\ncamera.out", style=dashed];
  step2 -> node0 [label="main/1>2\ndetect.out", style=dashed];
}
)");
}

TEST_CASE("a crossing has each value once, and a value of ticks before as one of its own") {
  Pipeline p;
  p.add("camera", "p.hd");
  for (const char* reader : {"far", "beside", "back"}) {
    p.add(reader, "p.narrow");
    p.connect("camera", std::string(reader) + ".in");
  }
  p.graph.edges.back().delay = 2;
  p.graph.edges.back().initial_empty = true;
  put(p, "gpu", {"far", "beside", "back"});
  const std::string words =
      "camera.out bgr8 1280×720, camera.out of 2 ticks before bgr8 1280×720, at most 5.3 MiB a tick";
  for (uint32_t node : {0, 1}) CHECK(Planned(p, {}, on(node)).text().find(words) != std::string::npos);
}

TEST_CASE(
    "7.12: a plan says of align between live clocks of two nodes that it is no better than they agree, and only "
    "there") {
  const auto note_of = [](graph::ClockMode mode, const std::string& home_of_right) {
    Pipeline p;
    for (const char* name : {"left", "right"}) {
      p.clock(mode, mode == graph::ClockMode::realtime ? 30 : 0);
      p.graph.clocks.back().name = name;
      p.add(std::string("from_") + name, "t.count", {{"rate", "30"}, {"count", "9"}}).clock = name;
    }
    p.add("both", "t.need");
    p.connect("from_left", "both.a");
    p.connect("from_right", "both.b", graph::Policy::align).within_ns = 5'000'000;
    put(p, home_of_right, {"from_right"});
    std::string note;
    const json plan = json::parse(plan::print_json(Planned(p, {}, on(0)).plan()));
    for (const json& edge : plan["edges"])
      if (edge["policy"] == "align") note = edge.value("note", "");
    return note;
  };
  CHECK(note_of(graph::ClockMode::realtime, "gpu") ==
        "its clocks are on gpu and home: it is no better than they agree, which the report says");
  CHECK(note_of(graph::ClockMode::realtime, "home").empty());
  CHECK(note_of(graph::ClockMode::source, "gpu").empty()); // the files' own times
}
