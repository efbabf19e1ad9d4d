// A graph written as a file is the same graph when it is read again.
#include <doctest/doctest.h>

#include <cstdlib>

#include "graph/graph.h"
#include "observe/error.h"
#include "tests/graph/random_graph.h"

using namespace millrace;
using namespace millrace::graph;

namespace {

// A template and a handler that takes its items.
Graph graph_with(const std::optional<Batch>& batch) {
  std::vector<Error> kept; // mistakes elsewhere do not count
  Graph graph = parse_yaml(
      "version: 1\nstreams: { cameras: { items: [gate, hall] } }\n"
      "handlers: { video: { type: t.video, for_each: cameras }, detect: { type: t.detect, input: video } }",
      "f", &kept);
  graph.handlers.at(1).batch = batch;
  return graph;
}

} // namespace

TEST_CASE("random graphs come back from their files as they were") {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    const Graph graph = RandomGraph(seed).graph();
    const std::string text = to_yaml(graph);
    INFO("seed " << seed << "\n" << text);
    Graph back;
    REQUIRE_NOTHROW(back = parse_yaml(text, "f"));
    REQUIRE(same(graph, back));
    REQUIRE(to_yaml(back) == text);
  }
}

TEST_CASE("a one-line pipeline and the file made of it are the same graph") {
  for (const char* line : {"test.pattern width=640 ! image.blur sigma=2 every=3 ! null.sink",
                           "a.src ! b.mix ; a.src p='x y' ! mix. policy=queue depth=8 ; a.src ! mix.side ! c.sink"}) {
    const Graph graph = parse_line(line);
    CHECK(same(graph, parse_yaml(to_yaml(graph), "f")));
  }
}

TEST_CASE("the canonical form is the one that a person would write") {
  const Graph graph = parse_line(
      "test.pattern name=video text='a: b' ! draw.boxes name=boxes  video. ! detect.people ! "
      "boxes.boxes policy=latest initial=empty");
  CHECK(to_yaml(graph) == R"(version: 1
handlers:
  video:
    type: test.pattern
    text: "a: b"
  boxes:
    type: draw.boxes
    input: video
    inputs:
      boxes: { from: people, policy: latest, initial: empty }
  people:
    type: detect.people
    input: video
)");
}

TEST_CASE("nodes are written before what names them") {
  const std::string text = R"(version: 1
nodes:
  edge:
    address: edge.local:7433
    devices: [cpu, sim:0]
  gpu:
    id: "mr: MFRA"
    coordinator: true
  cloud: {}
clock:
  node: edge
handlers:
  video:
    type: test.pattern
    node: edge
  blur:
    type: image.blur
    input: { from: video, delivery: live }
)";
  CHECK(to_yaml(parse_yaml(text, "f")) == text);
}

TEST_CASE("random batches come back from their files as they were") {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    const Graph graph = graph_with(RandomGraph(seed).batch());
    const std::string text = to_yaml(graph);
    INFO("seed " << seed << "\n" << text);
    REQUIRE(text.find("    batch: { ") != std::string::npos);
    std::vector<Error> kept; // the batch's own mistakes would leave it out
    const Graph back = parse_yaml(text, "f", &kept);
    REQUIRE(same(graph, back));
    REQUIRE(to_yaml(back) == text);
  }
}

TEST_CASE("batches that differ in any key are not the same") {
  const auto with = [](void (*change)(Batch&)) {
    Batch batch;
    change(batch);
    return graph_with(batch);
  };
  const std::vector<Graph> all = {
      graph_with({}),
      with([](Batch& b) { b.size = 8; }),
      with([](Batch& b) { b.wait_ns = 0; }),
      with([](Batch& b) { b.budget_ns = 1; }),
      with([](Batch& b) { b.max = 8; }),
      with([](Batch& b) { b.in_flight = 1; }),
      with([](Batch& b) { b.late = Late::drop; }),
      with([](Batch& b) { b.late = Late::keep; }),
      with([](Batch& b) { b.of_rows = true; }),
  };
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < all.size(); ++j) CHECK(same(all[i], all[j]) == (i == j));
}

TEST_CASE("graphs that differ in anything but places are not the same") {
  const Graph graph = parse_line("a.src p=1 ! b.sink");
  CHECK(same(graph, parse_line("a.src  p=1  ! b.sink")));
  Graph other = graph;
  other.handlers[0].params[0].text = "2";
  CHECK_FALSE(same(graph, other));
  other = graph;
  other.edges[0].delay = 1;
  CHECK_FALSE(same(graph, other));
  other = graph;
  other.edges[0].source_port = "x";
  CHECK_FALSE(same(graph, other));
  other = graph;
  other.handlers[1].every = 2;
  CHECK_FALSE(same(graph, other));
  other = graph;
  other.clocks.push_back({});
  CHECK_FALSE(same(graph, other));
  other = graph;
  other.nodes.push_back({"edge", "", {}, "", false, {}});
  CHECK_FALSE(same(graph, other));
  other.handlers[1].node = "edge";
  Graph elsewhere = other;
  elsewhere.handlers[1].node = "";
  CHECK_FALSE(same(other, elsewhere));
  other = graph;
  other.edges[0].delivery = Delivery::live;
  CHECK_FALSE(same(graph, other));
  other = graph;
  other.name = "x";
  CHECK_FALSE(same(graph, other));
  other = graph;
  other.handlers.pop_back();
  CHECK_FALSE(same(graph, other));
  other = graph;
  other.edges.clear();
  CHECK_FALSE(same(graph, other));
}

TEST_CASE("a handler that is called null stays a handler") {
  const Graph graph = parse_line("test.null ! null.null ! test.sink");
  CHECK(graph.edges.at(0).source == "null");
  CHECK(same(graph, parse_yaml(to_yaml(graph), "again.yaml")));
}
