// Graphs with streams: what an instance of a template is, and what edges and clocks become.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "graph/graph.h"
#include "graph/unfold.h"

using namespace millrace;
using namespace millrace::graph;

namespace {

Graph unfolded(const std::string& text) { return unfold(parse_yaml("version: 1\n" + text, "streams.yaml")); }

// "video@gate7 → draw@gate7" for each edge.
std::vector<std::string> edges_of(const Graph& graph) {
  std::vector<std::string> edges;
  for (const Edge& edge : graph.edges) {
    const auto port = [](const std::string& name) { return name.empty() ? "" : "." + name; };
    edges.push_back(edge.source + port(edge.source_port) + " → " + edge.target + port(edge.target_port) + " " +
                    std::to_string(edge.target_index));
  }
  return edges;
}

std::string param_of(const Graph& graph, const std::string& handler, const std::string& name) {
  REQUIRE(graph.find(handler));
  for (const Param& param : graph.find(handler)->params)
    if (param.name == name) return param.text;
  return "not given";
}

const std::string kTwo = R"(streams:
  cameras:
    items:
      gate7: { path: a.avi, draw.thickness: 4 }
      hall:  { path: b.avi }
)";

using Texts = std::vector<std::string>;

} // namespace

TEST_CASE("each stream has an instance of each template, with its own values, on a clock of its own") {
  const Graph graph = unfolded(kTwo + R"(clocks:
  cameras: { mode: realtime, rate: 25, in_flight: 3 }
handlers:
  video: { type: video.file, for_each: cameras, path: "in/{path}" }
  draw:  { type: draw.boxes, for_each: cameras, input: video, thickness: 2, text: "{index}: {stream} {{path}} {" }
)");
  Texts names;
  for (const Handler& handler : graph.handlers) names.push_back(handler.name);
  CHECK(names == Texts{"video@gate7", "video@hall", "draw@gate7", "draw@hall"});
  CHECK(edges_of(graph) == Texts{"video@gate7 → draw@gate7 0", "video@hall → draw@hall 0"});
  CHECK(param_of(graph, "video@hall", "path") == "in/b.avi");
  CHECK(param_of(graph, "draw@gate7", "thickness") == "4");
  CHECK(param_of(graph, "draw@hall", "thickness") == "2");
  CHECK(param_of(graph, "draw@hall", "text") == "1: hall {path} {");
  CHECK(graph.find("draw@hall")->written_as == "draw");
  CHECK(graph.find("draw@hall")->stream == "hall");
  REQUIRE(graph.clocks.size() == 2);
  CHECK(graph.clocks[1].name == "hall");
  CHECK(graph.clocks[1].rate.numerator == 25);
  CHECK(graph.clocks[1].in_flight == 3);
  CHECK(graph.find("draw@hall")->clock == "hall");
}

TEST_CASE("a handler outside reads all streams by a list, or one of them by its name") {
  const Graph graph = unfolded(kTwo + R"(clock: { mode: realtime, rate: 30 }
handlers:
  video: { type: video.file, for_each: cameras, path: "{path}" }
  logo:  { type: image.file, path: logo.png }
  draw:  { type: draw.boxes, for_each: cameras, inputs: { video: video, mark: { from: logo, policy: latest } } }
  wall:  { type: image.composite, inputs: { pictures: [ logo, { from: draw.video, policy: latest } ] } }
  save:  { type: video.writer, input: draw@hall.video }
  again: { type: draw.boxes, for_each: cameras, input: { from: video@gate7, policy: latest } }
)");
  CHECK(edges_of(graph) == Texts{"video@gate7 → draw@gate7.video 0", "video@hall → draw@hall.video 0",
                                 "logo → draw@gate7.mark 0", "logo → draw@hall.mark 0", "logo → wall.pictures 0",
                                 "draw@gate7.video → wall.pictures 1", "draw@hall.video → wall.pictures 2",
                                 "draw@hall.video → save 0", "video@gate7 → again@gate7 0",
                                 "video@gate7 → again@hall 0"});
  CHECK(graph.edges[5].over == "cameras");
  CHECK(graph.edges[7].over == "");
  // The clock without a name is that of the handlers outside that no stream drives, and the streams are like it.
  REQUIRE(graph.clocks.size() == 3);
  CHECK(graph.clocks[0].name == "gate7");
  CHECK(graph.clocks[0].rate.numerator == 30);
  CHECK(graph.clocks[2].name == "main");
  CHECK(graph.find("logo")->clock == "main");
  CHECK(graph.find("save")->clock == "");
}

TEST_CASE("a shared clock paces all streams, which a handler outside may then read by sync") {
  const Graph graph = unfolded(R"(streams:
  cameras: { items: [left, right], clock: shared }
handlers:
  video: { type: test.pattern, for_each: cameras }
  both:  { type: image.composite, input: video }
)");
  REQUIRE(graph.clocks.size() == 1);
  CHECK(graph.clocks[0].name == "cameras");
  CHECK(graph.find("video@right")->clock == "cameras");
  CHECK(edges_of(graph) == Texts{"video@left → both 0", "video@right → both 1"});
}

TEST_CASE("items are a map, a list or the files that a pattern finds, and come back from the canonical form") {
  const std::filesystem::path folder = std::filesystem::path(MILLRACE_BINARY_DIR) / "films";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const char* name : {"b.avi", "a 1.avi", ".hidden.avi", "c.mp4"}) std::ofstream(folder / name) << "film";
  const auto names = [](const std::string& items) {
    const Graph graph = parse_yaml("version: 1\nstreams: { cameras: { items: " + items +
                                       " } }\nhandlers: { video: { type: test.pattern, for_each: cameras } }\n",
                                   "items.yaml");
    CHECK(same(graph, parse_yaml(to_yaml(graph), "again.yaml")));
    Texts all;
    for (const Stream& stream : graph.streams[0].items)
      all.push_back(stream.name + (stream.fields.empty() ? "" : " " + stream.fields[0].text));
    return all;
  };
  CHECK(names("{ gate7: { path: a.avi }, hall: }") == Texts{"gate7 a.avi", "hall"});
  CHECK(names("[ { path: a.avi }, { path: b.avi, name: hall }, yard ]") == Texts{"0 a.avi", "hall b.avi", "yard"});
  const std::string found = (folder / "").string();
  CHECK(names("{ glob: \"" + found + "*.avi\" }") == Texts{"a_1 " + found + "a 1.avi", "b " + found + "b.avi"});
  // Each file gets a name of its own that a stream may have, however it is called.
  const std::filesystem::path other = std::filesystem::path(MILLRACE_BINARY_DIR) / "films [1] {x} %d";
  std::filesystem::remove_all(other);
  std::filesystem::create_directories(other);
  const std::string cut(70, 'x');
  for (const std::string& name :
       {std::string("ü.ts"), std::string("日本.ts"), std::string("東京.ts"), std::string("#.ts"), std::string("Süd.ts"),
        std::string("Säd.ts"), std::string("a.mp4"), std::string("a.ts"), std::string("gate 7.ts"),
        std::string("gate_7.ts"), std::string("1.ts"), cut + "1.ts", cut + "2.ts", std::string("[2].ts"),
        std::string("Tür 1.ts")})
    std::ofstream(other / name) << "film";
  Texts called;
  for (const std::string& line : names("{ glob: \"" + other.string() + "/*.*\" }"))
    called.push_back(line.substr(0, line.find(' ')));
  std::sort(called.begin(), called.end());
  const std::string hashed = cut.substr(0, 55) + "-";
  REQUIRE(called.size() == 15);
  CHECK(std::adjacent_find(called.begin(), called.end()) == called.end());
  for (const char* name : {"u00FC", "u65E5u672C", "u6771u4EAC", "u0023", "Su00FCd", "Su00E4d", "a_mp4", "a_ts",
                           "gateu00207", "gate_7", "1", "_2", "T_r_1"})
    CHECK_MESSAGE(std::binary_search(called.begin(), called.end(), name), name);
  CHECK(std::count_if(called.begin(), called.end(), [&](const std::string& n) { return n.starts_with(hashed); }) == 2);
  CHECK(names("{ glob: { path: a.avi } }") == Texts{"glob a.avi"}); // a stream of this name
}

TEST_CASE("a template is set for all its streams, and an instance for one") {
  Graph graph = parse_yaml("version: 1\n" + kTwo + R"(handlers:
  video: { type: video.file, for_each: cameras, path: "{path}" }
  draw:  { type: draw.boxes, for_each: cameras, input: video }
)",
                           "set.yaml");
  apply_set(graph, "draw.thickness=3");
  apply_set(graph, "draw@hall.thickness=5");
  apply_set(graph, "draw@hall.thickness=6");
  const Graph all = unfold(graph);
  CHECK(param_of(all, "draw@gate7", "thickness") == "4"); // its own, from the file
  CHECK(param_of(all, "draw@hall", "thickness") == "6");
  const auto refusal = [&](const std::string& assignment) {
    try {
      apply_set(graph, assignment);
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal("draw@hal.thickness=5") ==
        "error MR0321: 'cameras' has no stream 'hal'\n  at --set draw@hal.thickness=5\n  did you mean 'hall'?\n"
        "  try: --set draw@hall.thickness=5");
  CHECK(refusal("draw@hall.every=2").substr(0, 13) == "error MR0103:");
  CHECK(refusal("draw.for_each=doors").substr(0, 13) == "error MR0103:");
}

TEST_CASE("a graph without streams is its own") {
  const Graph graph = parse_line("test.pattern ! null.sink");
  CHECK(same(graph, unfold(graph)));
}
