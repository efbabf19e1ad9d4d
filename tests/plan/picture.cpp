// A plan as a picture: which boxes, arrows and bands it has, and what the SVG says.
#include "plan/picture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "graph/unfold.h"
#include "plan/plan.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Pipeline read_pipeline(const std::string& handlers) {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml("version: 1\n" + handlers, "picture.yaml"));
  return pipeline;
}

const plan::PictureBox& box_named(const plan::Picture& picture, const std::string& name) {
  const auto found = std::find_if(picture.boxes.begin(), picture.boxes.end(),
                                  [&](const plan::PictureBox& box) { return box.name == name; });
  REQUIRE_MESSAGE(found != picture.boxes.end(), name);
  return *found;
}

const plan::PictureArrow& arrow_of(const plan::Picture& picture, const std::string& words) {
  const auto found = std::find_if(picture.arrows.begin(), picture.arrows.end(),
                                  [&](const plan::PictureArrow& arrow) { return arrow.words == words; });
  REQUIRE_MESSAGE(found != picture.arrows.end(), words);
  return *found;
}

std::vector<std::string> names_of(const std::vector<plan::PicturePort>& ports) {
  std::vector<std::string> names;
  for (const plan::PicturePort& port : ports) names.push_back(port.name);
  return names;
}

} // namespace

TEST_CASE("a picture has a box for each handler, its ports in their order, and arrows from left to right") {
  const Planned planned(read_pipeline(R"(handlers:
  video:  { type: test.pattern, width: 64, height: 48, format: nv12, count: 3 }
  points: { type: test.points, points: 3, count: 3 }
  links:  { type: points.links, input: points }
  lines:  { type: marks.lines, inputs: { points: points, links: links } }
  dots:   { type: marks.dots, inputs: { points: points } }
  paint:  { type: draw.marks, inputs: { marks: [dots, lines], video: video } }
  end:    { type: null.sink, input: paint }
)"));
  const plan::Picture picture = plan::picture_of(planned.plan());
  CHECK(picture.boxes.size() == planned.plan().handlers.size());
  CHECK(names_of(box_named(picture, "paint").inputs) == Names{"video", "marks[0]", "marks[1]"});
  CHECK(names_of(box_named(picture, "lines").inputs) == Names{"links", "points"});
  CHECK(box_named(picture, "paint~rgb8").is_inserted);
  for (const plan::PictureArrow& arrow : picture.arrows) {
    CHECK(arrow.is_sync);
    CHECK_FALSE(arrow.goes_back);
    CHECK(arrow.corners.front().first < arrow.corners.back().first);
  }
  const plan::PictureArrow& arrow = arrow_of(picture, "dots.marks → paint.marks[0], sync");
  const plan::PictureBox& paint = box_named(picture, "paint");
  CHECK(arrow.corners.back() == std::pair(paint.x, paint.y + paint.inputs[1].y));
  const std::string svg = plan::svg_of(picture);
  CHECK(svg == plan::svg_of(plan::picture_of(planned.plan())));
  CHECK(svg.find("<title>dots.marks → paint.marks[0], sync</title>") != std::string::npos);
}

TEST_CASE("an edge to a later tick is drawn back, and other policies are dashed") {
  Pipeline p;
  p.add("video", "t.count", {{"count", "9"}});
  p.add("detect", "t.paced");
  p.add("tracker", "t.paced");
  p.connect("video", "detect.in");
  p.connect("video", "tracker.in");
  p.connect("detect", "tracker.extra", graph::Policy::latest);
  graph::Edge& loop = p.connect("tracker", "detect.extra");
  loop.delay = 1;
  loop.initial_empty = true;
  const plan::Picture picture = plan::picture_of(Planned(p).plan());
  const plan::PictureArrow& back = arrow_of(picture, "tracker.out → detect.extra, sync, 1 before");
  CHECK(back.goes_back);
  CHECK_FALSE(arrow_of(picture, "detect.out → tracker.extra, latest").is_sync);
  int lowest = 0;
  for (const auto& [x, y] : back.corners) lowest = std::max(lowest, y);
  for (const plan::PictureBox& box : picture.boxes) CHECK(box.y + box.height < lowest);
}

TEST_CASE("what is there for each stream is drawn once, with a count, and domains are bands") {
  const Planned planned(read_pipeline(R"(streams: { cameras: { items: { gate: {}, hall: {}, yard: {} } } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 64, height: 48, count: 3 }
  blur:  { type: image.blur, for_each: cameras, input: video, device: "sim:0" }
  end:   { type: null.sink, for_each: cameras, input: blur }
)"),
                        machine_of(1, {"cpu", "sim:0"}));
  const plan::Picture picture = plan::picture_of(planned.plan());
  CHECK(picture.boxes.size() == 3);
  const plan::PictureBox& blur = box_named(picture, "blur@cameras");
  CHECK(blur.handlers.size() == 3);
  CHECK(arrow_of(picture, "video@cameras.video → blur@cameras.video, sync").edges.size() == 3);
  REQUIRE(picture.lanes.size() == 2);
  CHECK(picture.lanes[1].name == "sim:0");
  CHECK((blur.y > picture.lanes[0].bottom && blur.y + blur.height <= picture.lanes[1].bottom));
  CHECK(plan::svg_of(picture).find(">blur@cameras (3)</text>") != std::string::npos);
}

TEST_CASE("instances of a template in two domains are two boxes, each with its arrows") {
  const Planned planned(read_pipeline(R"(streams: { cameras: { items: { gate: { at: "cpu" }, hall: { at: "sim:0" } } } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 64, height: 48, count: 3 }
  blur:  { type: image.blur, for_each: cameras, input: video, device: "{at}" }
  end:   { type: null.sink, for_each: cameras, input: blur }
)"),
                        machine_of(1, {"cpu", "sim:0"}));
  const plan::Picture picture = plan::picture_of(planned.plan());
  size_t blurs = 0;
  for (const plan::PictureBox& box : picture.boxes) {
    if (box.type != "image.blur") continue;
    ++blurs;
    CHECK(names_of(box.inputs) == Names{"video"});
    CHECK(names_of(box.outputs) == Names{"video"});
  }
  CHECK(blurs == 2);
  CHECK(picture.arrows.size() == 4);
}
