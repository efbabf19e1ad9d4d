// A whole frame of the built-in handlers: points that are joined by links that remember, drawn as curves and dots.
#include <doctest/doctest.h>

#include <string>

#include "graph/graph.h"
#include "harness.h"
#include "tests/file_bytes.h"
#include "tests/folder.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr size_t kTicks = 50, kWidth = 192, kHeight = 108;

// The bytes of all pictures. All but source and file run on `device`.
std::string pictures_on(const std::string& device, uint32_t workers, uint64_t adversary) {
  const Folder folder;
  const std::string file = (folder.path / "out.rgba").string();
  const std::string there = ", device: \"" + device + "\"";
  Pipeline pipeline;
  pipeline.graph = graph::parse_yaml(
      "version: 1\nhandlers:\n"
      "  video:  { type: test.pattern, pattern: gradient, width: 192, height: 108, "
      "format: rgba8, count: 50 }\n"
      "  points: { type: test.points, points: 40, width: 192, height: 108, count: 50 }\n"
      "  links:  { type: points.links, input: points, k: 3, hysteresis: 0.3, gain: 0.2, "
      "fade: 0.8" +
          there +
          " }\n"
          "  curves: { type: marks.lines, inputs: { links: links, points: points }, shape: "
          "curve, width: 1.5, length_max: 90" +
          there +
          " }\n"
          "  dots:   { type: marks.dots, inputs: { points: points }, radius: 4" +
          there +
          " }\n"
          "  paint:  { type: draw.marks, inputs: { video: video, marks: [curves, dots] }" +
          there +
          " }\n"
          "  save:   { type: file.raw_writer, input: paint, path: \"" +
          file + "\" }\n",
      "frame.yaml");
  Setup setup;
  setup.workers = workers;
  setup.adversarial = adversary != 0;
  setup.seed = adversary;
  if (device != "cpu") setup.domains = {"cpu", device};
  const Ran result = run(std::move(pipeline), setup);
  REQUIRE_MESSAGE(result.ok, result.error.what);
  return bytes_of(file);
}

} // namespace

TEST_CASE("a frame of links that remember has the same bytes with any number of threads and in any order of a device") {
  const std::string pictures = pictures_on("cpu", 1, 0);
  REQUIRE(pictures.size() == kTicks * kWidth * kHeight * 4);
  CHECK(pictures.substr(0, pictures.size() / kTicks) != pictures.substr(pictures.size() - pictures.size() / kTicks));
  for (const uint32_t workers : {2u, 8u}) {
    CAPTURE(workers);
    CHECK((pictures_on("cpu", workers, 0) == pictures));
  }
  for (const uint64_t adversary : {0, 1, 2, 3}) {
    CAPTURE(adversary);
    CHECK((pictures_on("sim:0", 2, adversary) == pictures));
  }
}
