// The printed forms of a plan with streams: templates once, streams that differ by name. As ../cli/plans/streams.txt.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "graph/unfold.h"
#include "over_nodes.h"
#include "plan/print.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;
using nlohmann::json;

namespace {

Pipeline unfolded(const std::string& text) {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml("version: 1\n" + text, "streams.yaml"));
  return pipeline;
}

// One has another size, and a name that is also a word in the text of a plan.
Pipeline three_cameras(const std::string& handlers) {
  return unfolded(R"(streams: { cameras: { items: { gate7: {}, in: { video.width: 128 }, yard: {} } } }
clocks: { cameras: { mode: free }, wall: { mode: free, rate: 30 } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 64, height: 48, format: nv12 }
)" + handlers);
}

Pipeline many(uint32_t streams) {
  std::string text = "streams: { cameras: { items: [";
  for (uint32_t s = 0; s < streams; ++s) text += (s == 0 ? "" : ", ") + ("c" + std::to_string(s));
  text += "] } }\nhandlers:\n  h0: { type: test.pattern, for_each: cameras }\n";
  for (int h = 1; h < 7; ++h)
    text += "  h" + std::to_string(h) + ": { type: image.blur, for_each: cameras, input: h" + std::to_string(h - 1) +
            " }\n";
  return unfolded(text + "  h7: { type: null.sink, for_each: cameras, input: h6 }\n");
}

size_t lines_of(const Planned& planned) {
  const std::string text = planned.text();
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

} // namespace

TEST_CASE("64 streams of eight handlers are printed on at most 60 lines, whatever runs them") {
  for (const uint32_t workers : {1u, 3u, 8u}) {
    CHECK(lines_of(Planned(many(64), machine_of(workers))) <= 60);
    const size_t lines = lines_of(Planned(many(64), machine_of(workers, {"cpu", "sim:0"})));
    CHECK(lines <= 60);
    CHECK(lines_of(Planned(many(64), machine_of(workers, {"sim:0", "cpu"}))) <= 60);
  }
}

TEST_CASE("as many lines tell of 64 streams as of two") {
  CHECK(lines_of(Planned(many(64), machine_of(2))) == lines_of(Planned(many(2), machine_of(2))));
}

TEST_CASE("a stream that differs in a format is named with what it has instead") {
  const Planned planned(three_cameras("  end: { type: null.sink, for_each: cameras, input: video }\n"));
  CHECK(planned.line_with("video@cameras (3)  ") == "    video@cameras (3)  test.pattern  nv12 64×48 (in: 128×48)");
  CHECK(planned.line_with("2 × 1 × ") == "    video@cameras.video  2 × 1 × 4.8 KiB = 9.5 KiB: 1 in flight");
  CHECK(planned.line_with("video@in.video") == "    video@in.video       1 × 9.2 KiB: 1 in flight");
  CHECK(planned.line_with("cameras (3)  free") == "  cameras (3)  free; window 1: 1 in flight");
}

TEST_CASE("a list over all streams is one edge; one over some of them names these") {
  const Planned planned(
      three_cameras(R"(  all: { type: image.composite, input: { from: video, policy: latest }, clock: wall }
  some:
    type: image.composite
    clock: wall
    inputs: { layers: [ { from: video@in, policy: latest }, { from: video@yard, policy: latest } ] }
  one: { type: null.sink, input: video@in }
)"));
  CHECK(planned.line_with("→ all").find("video@cameras.video → all.layers") != std::string::npos);
  CHECK(planned.line_with("→ all").ends_with("  latest, 3 streams"));
  CHECK(planned.line_with("→ some").ends_with("  latest, 2 streams: in, yard"));
  CHECK(planned.line_with("→ one").find("video@in.video → one.in ") != std::string::npos);
  CHECK(planned.line_with("  wall ").find("led by cameras (3)") != std::string::npos);
}

TEST_CASE("conversions that were inserted are printed by template") {
  const Planned planned(three_cameras("  gray: { type: p.grayonly, for_each: cameras, input: video }\n"));
  CHECK(planned.inserted() == Names{"gray~gray8@gate7", "gray~gray8@in", "gray~gray8@yard"});
  CHECK(planned.line_with("  gray~gray8@cameras: ").ends_with("64×48, cost not known; 2 streams"));
  CHECK(planned.line_with("  gray~gray8@in: ").ends_with("128×48, cost not known"));
  CHECK(planned.line_with("gray~gray8@cameras.video → ").find("gray@cameras.") != std::string::npos);
}

TEST_CASE("notes name templates with a count, and a single stream by its name") {
  const Planned planned(many(5), machine_of(2));
  CHECK(planned.line_with("costs not known: ").find("not known: h0@cameras (5), h1@cameras (5), ") !=
        std::string::npos);
}

TEST_CASE("crossings of all streams are printed once, those to a list too") {
  Pipeline pipeline = three_cameras(R"(  blur: { type: image.blur, for_each: cameras, input: video }
  wall: { type: image.composite, input: { from: blur, policy: latest }, clock: wall }
)");
  put(pipeline, "gpu", {"blur@gate7", "blur@in", "blur@yard"});
  const Planned planned(pipeline, {}, on(0));
  CHECK(planned.line_with("cameras/*  to gpu    video@cameras.video").ends_with("; 2 streams"));
  CHECK(planned.line_with("cameras/*  from gpu  blur@cameras.video").find("wall.layers (latest)") != std::string::npos);
  CHECK(planned.line_with("  gpu: ").find("blur@cameras (3) (image.blur)") != std::string::npos);
  CHECK(planned.count_of("  from gpu  ") == 2); // the stream of another size has its own
}

TEST_CASE("the plan's JSON has all instances, with their templates and streams") {
  const json made =
      json::parse(plan::print_json(Planned(three_cameras("  end: { type: null.sink, input: video@in }\n")).plan()));
  CHECK(made["streams"] == json{{"cameras", {"gate7", "in", "yard"}}});
  CHECK(made["handlers"].size() == 4);
  CHECK(made["handlers"]["video@yard"]["template"] == "video");
  CHECK(made["handlers"]["video@yard"]["stream"] == "yard");
  CHECK(made["handlers"]["end"]["template"].is_null());
  CHECK_FALSE(json::parse(plan::print_json(Planned(Pipeline("test.number ! null.sink")).plan())).contains("streams"));
}

TEST_CASE("a template is one node of the drawing") {
  const std::string dot = plan::print_dot(Planned(many(64)).plan());
  CHECK(dot.find("label=\"h3@cameras (64)\\nimage.blur\"") != std::string::npos);
  CHECK(dot.find("label=\"video (64)\"") != std::string::npos);
  CHECK(dot.find("h3@c5") == std::string::npos);
  CHECK(std::count(dot.begin(), dot.end(), '\n') < 40);
}
