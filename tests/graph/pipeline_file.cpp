// Pipeline files that are right: what each key becomes in the graph.
#include <doctest/doctest.h>

#include <filesystem>

#include "graph/graph.h"
#include "observe/error.h"
#include "observe/error_codes.h"

using namespace millrace;
using namespace millrace::graph;

namespace {

const char* const kStreet = R"(version: 1
name: street
handlers:
  video:  { type: video.file, path: vtest.avi }
  blur:   { type: image.blur, input: video, sigma: 2 }
  detect: { type: detect.people, input: video, every: 3 }
  boxes:  { type: draw.boxes, inputs: { video: blur, boxes: { from: detect.boxes, policy: latest, initial: empty } } }
  show:   { type: view.window, input: boxes }
)";

Graph with_handler(const std::string& keys) {
  return parse_yaml("version: 1\nclocks: { left: {}, right: {} }\nhandlers: { a: { type: t.a, " + keys + " } }", "f");
}
// The batch of a handler that reads a template; mistakes elsewhere do not count.
Batch batch_of(const std::string& value) {
  const std::string text =
      "version: 1\nstreams: { cameras: { items: [a, b] } }\nhandlers: { video: { type: t.v, for_each: cameras },\n"
      "            detect: { type: t.d, input: video, batch: " +
      value + " } }";
  std::vector<Error> kept;
  const Graph graph = parse_yaml(text, "f", &kept);
  for (const Error& error : kept)
    if (error.code != code::bad_stream_edge) throw Failure(error);
  return graph.handlers.at(1).batch.value();
}
Edge edge_of(const std::string& input) { return with_handler("input: " + input).edges.at(0); }
std::string param_of(const std::string& value) { return with_handler("p: " + value).handlers.at(0).params.at(0).text; }
int code_of(const std::string& text) {
  try {
    parse_yaml(text, "f");
  } catch (const Failure& failure) {
    return failure.error().code;
  }
  return 0;
}

} // namespace

TEST_CASE("the pipeline of the design is read as it is meant") {
  const Graph graph = parse_yaml(kStreet, "street.yaml");
  CHECK(graph.name == "street");
  CHECK(graph.clocks.empty());
  REQUIRE(graph.handlers.size() == 5);
  CHECK(graph.handlers[0].name == "video");
  CHECK(graph.handlers[0].type == "video.file");
  REQUIRE(graph.handlers[0].params.size() == 1);
  CHECK(graph.handlers[0].params[0].name == "path");
  CHECK(graph.handlers[0].params[0].text == "vtest.avi");
  CHECK(graph.handlers[2].every == 3);
  REQUIRE(graph.edges.size() == 5);
  const Edge& boxes = graph.edges[3];
  CHECK(boxes.source == "detect");
  CHECK(boxes.source_port == "boxes");
  CHECK(boxes.target == "boxes");
  CHECK(boxes.target_port == "boxes");
  CHECK(boxes.policy == Policy::latest);
  CHECK(boxes.initial_empty);
}

TEST_CASE("places count characters, not bytes") {
  const Graph graph = parse_yaml("version: 1\nhandlers: { a: { type: t.a, x-c: 'äöü€', sigma: 2 } }", "f.yaml");
  const Param& sigma = graph.handlers.at(0).params.at(0);
  CHECK(sigma.name_place.file == "f.yaml");
  CHECK(sigma.name_place.line == 2);
  CHECK(sigma.name_place.column == 42);
  CHECK(sigma.place.column == 49);
}

TEST_CASE("nodes are read in their order, with what each of them says") {
  const Graph graph = parse_yaml(R"(version: 1
handlers:
  video: { type: t.a, node: edge }
  blur: { type: t.b, node: gpu, input: { from: video, delivery: reliable } }
  show: { type: t.c, input: { from: blur, delivery: live } }
clocks: { main: { node: edge }, slow: { } }
nodes:
  edge: { address: 'edge.local:7433', id: 'mr:MFRA', x-where: roof }
  gpu: { devices: [ cuda:0, cpu ], coordinator: true }
  cloud: { devices: cpu, coordinator: false }
)",
                                 "f");
  REQUIRE(graph.nodes.size() == 3);
  CHECK(graph.nodes[0].address == "edge.local:7433");
  CHECK(graph.nodes[0].id == "mr:MFRA");
  CHECK(graph.nodes[0].devices.empty());
  CHECK(graph.nodes[0].place.line == 8);
  CHECK(graph.nodes[1].devices == std::vector<std::string>{"cuda:0", "cpu"});
  CHECK(graph.nodes[2].devices == std::vector<std::string>{"cpu"});
  CHECK(node_names(graph) == std::vector<std::string>{"gpu", "edge", "cloud"});
  CHECK(graph.handlers[0].node == "edge");
  CHECK(graph.handlers[1].node == "gpu");
  CHECK(graph.handlers[2].node.empty());
  CHECK(graph.clocks[0].node == "edge");
  CHECK(graph.clocks[1].node.empty());
  CHECK(graph.edges[0].delivery == Delivery::reliable);
  CHECK(graph.edges[1].delivery == Delivery::live);
  CHECK(edge_of("{ from: b }").delivery == Delivery::automatic);
}

TEST_CASE("the first node is the coordinator if none says that it is") {
  const std::string handlers = "\nhandlers: { a: { type: t.a } }";
  CHECK(node_names(parse_yaml("version: 1\nnodes: { edge: {}, gpu: {} }" + handlers, "f")) ==
        std::vector<std::string>{"edge", "gpu"});
  CHECK(node_names(parse_yaml("version: 1" + handlers, "f")).empty());
}

TEST_CASE("reserved keys of a handler are read into its fields") {
  const Graph graph =
      with_handler("every: 4, device: 'cuda:0', clock: left, on_error: bypass, budget: 1.5ms/2m, concurrency: 3");
  const Handler& handler = graph.handlers[0];
  CHECK(handler.every == 4);
  CHECK(handler.device == "cuda:0");
  CHECK(handler.clock == "left");
  CHECK(handler.on_error == OnError::bypass);
  CHECK(handler.budget_ns == 1'500'000);
  CHECK(handler.patience_ns == 120'000'000'000);
  CHECK(handler.concurrency == 3);
  CHECK(handler.params.empty());
}

TEST_CASE("a whole number may be written with a point or an exponent, and must be whole") {
  const Graph graph = with_handler("every: 4.0, concurrency: 3e0");
  CHECK(graph.handlers[0].every == 4);
  CHECK(graph.handlers[0].concurrency == 3);
  CHECK_THROWS_AS(with_handler("every: 4.5"), Failure);
  CHECK_THROWS_AS(with_handler("every: 0.0"), Failure);
  CHECK_THROWS_AS(with_handler("every: 1e30"), Failure);
}

TEST_CASE("a batch is read as a size, or by its keys") {
  const Batch sized = batch_of("16");
  CHECK(sized.size == 16);
  CHECK(sized.is_fixed());
  CHECK(sized.wait_ns == -1);
  CHECK(sized.max == 0);
  const Batch fixed = batch_of("{ size: 3, wait: 0ms, max: 4, in_flight: 1, of: rows }");
  CHECK(fixed.size == 3);
  CHECK(fixed.wait_ns == 0);
  CHECK(fixed.max == 4);
  CHECK(fixed.in_flight == 1);
  CHECK(fixed.of_rows);
  CHECK(fixed.late == Late::automatic);
  const Batch learnt = batch_of("{ budget: 50ms, x-why: measured, max: 32, late: keep, in_flight: 2 }");
  CHECK_FALSE(learnt.is_fixed());
  CHECK(learnt.budget_ns == 50'000'000);
  CHECK(learnt.max == 32);
  CHECK(learnt.late == Late::keep);
  CHECK(learnt.in_flight == 2);
  CHECK_FALSE(learnt.of_rows);
  CHECK(batch_of("{ late: drop }").late == Late::drop);
  CHECK(batch_of("{ wait: 5ms }").is_fixed());
  CHECK(learnt.place.line == 4);
  CHECK(learnt.place.column == 48); // of the key
}

TEST_CASE("the most of a batch is a power of two, and the nearest one is given for another number") {
  const auto edit_for = [](const std::string& max) {
    try {
      batch_of("{ max: " + max + " }");
    } catch (const Failure& failure) {
      CHECK(failure.error().code == code::number_out_of_range);
      return failure.error().edit;
    }
    return std::string("none");
  };
  for (const char* power : {"1", "2", "4", "8", "16", "32", "64"}) CHECK(edit_for(power) == "none");
  CHECK(edit_for("0") == "max: 1");
  CHECK(edit_for("-9223372036854775808") == "max: 1");
  CHECK(edit_for("3") == "max: 2"); // as far as 4, and within what was said
  CHECK(edit_for("5") == "max: 4");
  CHECK(edit_for("7") == "max: 8");
  CHECK(edit_for("47") == "max: 32");
  CHECK(edit_for("49") == "max: 64");
  CHECK(edit_for("65") == "max: 64");
  CHECK(edit_for("9223372036854775807") == "max: 64");
}

TEST_CASE("streams that were refused are no further mistake of a batch") {
  std::vector<Error> kept;
  const std::string handlers = "handlers: { a: { type: t.a, batch: 4 } }";
  parse_yaml("version: 1\nstreams: []\n" + handlers, "f", &kept);
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].code == code::wrong_kind_of_value);
  kept.clear();
  const Graph graph = parse_yaml("version: 1\n" + handlers, "f", &kept);
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].code == code::conflicting_keys);
  CHECK_FALSE(graph.handlers.at(0).batch.has_value());
}

TEST_CASE("keys of an edge are read into its fields") {
  CHECK(edge_of("b").source == "b");
  CHECK(edge_of("b.out").source_port == "out");
  CHECK(edge_of("{ from: b, policy: latest, lag: 2 }").lag == 2);
  const Edge queue = edge_of("{ from: b, policy: queue, depth: 8, full: drop_oldest }");
  CHECK(queue.policy == Policy::queue);
  CHECK(queue.depth == 8);
  CHECK(queue.full == Full::drop_oldest);
  CHECK(edge_of("{ from: b, policy: align, within: 20ms }").within_ns == 20'000'000);
  CHECK(edge_of("{ from: b, delay: 1, initial: empty }").delay == 1);
  CHECK(edge_of("{ from: b, copy: forbid }").forbid_copy);
  CHECK(edge_of("{ from: b, convert: forbid }").forbid_convert);
  CHECK(edge_of("{ from: b, domain: 'cuda:1' }").domain == "cuda:1");
}

TEST_CASE("a list of inputs numbers its entries, and an input may stand beside inputs") {
  const Graph graph = with_handler("input: [b, { from: c.x, delay: 1, initial: empty }], inputs: { side: d }");
  REQUIRE(graph.edges.size() == 3);
  CHECK(graph.edges[0].target_index == 0);
  CHECK(graph.edges[1].target_index == 1);
  CHECK(graph.edges[1].source_port == "x");
  CHECK(graph.edges[2].target_port == "side");
  CHECK(graph.edges[2].target_index == 0);
}

TEST_CASE("a clock has a mode, an exact rate, and a window") {
  const auto clock_of = [](const std::string& text) {
    return parse_yaml("version: 1\nclock: " + text + "\nhandlers: { a: { type: t.a } }", "f").clocks.at(0);
  };
  CHECK(clock_of("{ mode: realtime }").mode == ClockMode::realtime);
  CHECK(clock_of("{ in_flight: 3 }").in_flight == 3);
  CHECK(clock_of("{ in_flight: 3 }").in_flight_least == 0);
  CHECK(clock_of("{ in_flight: [2, 5] }").in_flight == 5);
  CHECK(clock_of("{ in_flight: [2, 5] }").in_flight_least == 2);
  CHECK(clock_of("{ in_flight: [3, 3] }").in_flight_least == 0);
  CHECK(clock_of("{ rate: 29.97 }").rate.numerator == 2997);
  CHECK(clock_of("{ rate: 29.97 }").rate.denominator == 100);
  CHECK(clock_of("{ rate: 30000/1001 }").rate.denominator == 1001);
  CHECK(clock_of("{ rate: 60/2 }").rate.numerator == 30);
}

TEST_CASE("parameters keep their text, nest by dots, and lists become JSON") {
  CHECK(param_of("2.50") == "2.50");
  CHECK(param_of("yes") == "yes");
  CHECK(param_of("''") == "");
  CHECK(param_of("[1, 2.5, -3e2, true, no, '4', .5]") == R"([1,2.5,-3e2,true,"no","4",".5"])");
  CHECK(param_of("[{ a: 1, b: [x, ~] }]") == R"([{"a":1,"b":["x",null]}])");
  CHECK(param_of("[]") == "[]");
  CHECK(param_of("{}") == "{}");
  const Graph graph = with_handler("codec: { name: h264, rate: { max: 4 } }, codec.gop: 12");
  REQUIRE(graph.handlers[0].params.size() == 3);
  CHECK(graph.handlers[0].params[0].name == "codec.name");
  CHECK(graph.handlers[0].params[1].name == "codec.rate.max");
  CHECK(graph.handlers[0].params[2].name == "codec.gop");
}

TEST_CASE("keys that begin with x- are passed over everywhere") {
  const Graph graph = parse_yaml(
      "x-top: { a: [1] }\nversion: 1\nclock: { x-c: 1 }\nhandlers: { a: { type: t.a, x-h: ~, "
      "input: { from: a, x-e: 2, delay: 1 } } }",
      "f");
  CHECK(graph.handlers[0].params.empty());
}

TEST_CASE("anchors and aliases stand for what they name") {
  const Graph graph = parse_yaml("version: 1\nhandlers:\n  a: &a { type: t.a, p: 1 }\n  b: *a\n", "f");
  REQUIRE(graph.handlers.size() == 2);
  CHECK(graph.handlers[1].params.at(0).text == "1");
}

TEST_CASE("JSON is a pipeline file too") {
  const Graph graph = parse_yaml(R"({"version": 1, "handlers": {"a": {"type": "t.a", "p": [1, "x"]}}})", "f.json");
  CHECK(graph.handlers.at(0).params.at(0).text == R"([1,"x"])");
}

TEST_CASE("a byte order mark and carriage returns are taken in stride") {
  const Graph graph = parse_yaml("\xEF\xBB\xBFversion: 1\r\nhandlers:\r\n  a: { type: t.a }\r\n", "f");
  CHECK(graph.handlers.at(0).place.line == 3);
  CHECK(graph.handlers.at(0).place.column == 3);
}

TEST_CASE("every pipeline of the examples is read") {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MILLRACE_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path().string());
    CHECK_NOTHROW(parse_file(entry.path().string()));
    ++count;
  }
  CHECK(count > 0);
}

TEST_CASE("limits are kept: text, nesting, handlers, values by aliases, parameters, nodes") {
  const std::string head = "version: 1\nhandlers: { a: { type: t.a, p: ";
  CHECK(code_of(head + std::string(28, '[') + std::string(28, ']') + " } }") == 0);
  CHECK(code_of(head + std::string(40, '[') + std::string(40, ']') + " } }") == 203);
  CHECK(code_of(head + std::string(1'000'000, '[')) == 203);
  CHECK(code_of(head + "'" + std::string(5u << 20, 'x') + "' } }") == 203);
  std::string handlers = "version: 1\nhandlers:\n", params = "version: 1\nhandlers:\n  a:\n    type: t.a\n";
  for (int i = 0; i < 10'001; ++i) handlers += "  h" + std::to_string(i) + ": { type: t.a }\n";
  CHECK(code_of(handlers) == 203);
  for (int i = 0; i < 257; ++i) params += "    p" + std::to_string(i) + ": 1\n";
  CHECK(code_of(params) == 203);
  std::string nodes;
  for (int i = 0; i < 64; ++i) nodes += "n" + std::to_string(i) + ": {}, ";
  CHECK(code_of("version: 1\nnodes: { " + nodes + "}\nhandlers: { a: { type: t.a } }") == 0);
  CHECK(code_of("version: 1\nnodes: { " + nodes + "last: {} }\nhandlers: { a: { type: t.a } }") == 203);
  std::string laughs = "version: 1\nx-a: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    laughs += "x-a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) laughs += alias + ", ";
    laughs += alias + "]\n";
  }
  CHECK(code_of(laughs) == 204);
}

TEST_CASE("load takes what ends like a file or is one for a file, and the rest for one line") {
  CHECK(load("test.pattern ! null.sink").handlers.size() == 2);
  CHECK(load(MILLRACE_SOURCE_DIR "/examples/pipelines/street.yaml").name == "street");
  try {
    load("not/there.yaml");
    FAIL("a file that is not there was loaded");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 104);
  }
  try {
    load(MILLRACE_SOURCE_DIR "/tests");
    FAIL("a folder was loaded");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 104);
  }
}
