// Differences of two pipelines, as a person is told of them.
#include "fleet/pipeline_difference.h"

#include <doctest/doctest.h>

namespace millrace::fleet {
namespace {

using Lines = std::vector<std::string>;

// As graph::to_yaml() writes it.
constexpr const char* kPipeline = R"(version: 1
nodes:
  edge:
    address: edge.local:7433
  gpu: {}
clock:
  mode: realtime
  rate: 30
handlers:
  camera:
    type: test.pattern
    node: edge
    count: 200
  blur:
    type: image.blur
    input: camera
    node: gpu
  both:
    type: image.composite
    inputs:
      layer: [camera, { from: blur, delay: 1 }]
)";

// The pipeline in which the text stands in place of another one.
std::string with(const std::string& text, const std::string& in_place_of) {
  std::string pipeline = kPipeline;
  const size_t at = pipeline.find(in_place_of);
  REQUIRE(at != std::string::npos);
  return pipeline.replace(at, in_place_of.size(), text);
}

Lines difference_of(const std::string& edge, const std::string& gpu) {
  return pipeline_difference({"edge", edge}, {"gpu", gpu});
}
Lines difference(const std::string& text, const std::string& in_place_of) {
  return difference_of(kPipeline, with(text, in_place_of));
}

} // namespace

TEST_CASE("Two pipelines that differ in a parameter, a key or an address are told apart by it, as --set writes it") {
  CHECK(difference("count: 7", "count: 200") == Lines{"camera.count: 200 on edge, 7 on gpu"});
  CHECK(difference("image.blend", "image.blur") == Lines{"blur.type: image.blur on edge, image.blend on gpu"});
  CHECK(difference("other:1", "edge.local:7433") ==
        Lines{"nodes.edge.address: edge.local:7433 on edge, other:1 on gpu"});
  CHECK(difference("rate: 60", "rate: 30") == Lines{"clock.rate: 30 on edge, 60 on gpu"});
  CHECK(difference("delay: 2", "delay: 1") == Lines{"both.inputs.layer: [camera, { from: blur, delay: 1 }] on edge, "
                                                    "[camera, { from: blur, delay: 2 }] on gpu"});
}

TEST_CASE("A key that one of two pipelines lacks is told, and a handler as a whole") {
  CHECK(difference("", "    count: 200\n") == Lines{"camera.count: 200 on edge, not given on gpu"});
  CHECK(difference("count: 200\n    fps: 5", "count: 200") == Lines{"camera.fps: not given on edge, 5 on gpu"});
  const std::string more = "handlers:\n  more:\n    type: test.pattern\n    count: 3\n";
  CHECK(difference(more, "handlers:\n") == Lines{"more: not given on edge, given on gpu"});
  CHECK(difference_of(with(more, "handlers:\n"), kPipeline) == Lines{"more: given on edge, not given on gpu"});
}

TEST_CASE("Pipelines that differ in much are told apart by three keys and a number, and long values are cut") {
  CHECK(difference("count: 7\n    fps: 5\n    width: 64\n    height: 48", "count: 200") ==
        Lines{"camera.count: 200 on edge, 7 on gpu", "camera.fps: not given on edge, 5 on gpu",
              "camera.width: not given on edge, 64 on gpu", "and 1 more"});
  CHECK(difference("count: " + std::string(500, '7'), "count: 200") ==
        Lines{"camera.count: 200 on edge, " + std::string(kShownValueBytesMax, '7') + "… on gpu"});
}

TEST_CASE("Pipelines that differ in a password are told apart without it") {
  const std::string here = "handlers:\n  a:\n    path: rtsp://me:one@10.0.0.7/" + std::string(80, 'x') + "\n";
  const std::string there = "handlers:\n  a:\n    path: rtsp://me:two@10.0.0.7/" + std::string(80, 'x') + "\n";
  const Lines lines = difference_of(here, there);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("rtsp://***@10.0.0.7/") != std::string::npos);
  CHECK(lines[0].find("they differ in what is not shown") != std::string::npos);
  CHECK(lines[0].find("one") == std::string::npos);
  CHECK(lines[0].find("two") == std::string::npos);
}

TEST_CASE("Pipelines that differ in the order of their handlers have no key to be told apart by") {
  const std::string here = "handlers:\n  a:\n    type: x\n  b:\n    type: y\n";
  const std::string there = "handlers:\n  b:\n    type: y\n  a:\n    type: x\n";
  CHECK(difference_of(here, there).empty());
  CHECK(difference_of(here, here).empty());
}

TEST_CASE("Any text is taken for a pipeline, for it comes from another machine") {
  for (const char* text : {"", "\n\n", ":", ": :", "   ", "a", "      deep: 1", "a:\n      far: 2\n  near: 3", "\n: x"})
    CHECK(difference_of(text, "version: 1\n").size() <= kDifferencesMax + 1);
}

} // namespace millrace::fleet
