// Graphs written as one-line pipelines are read as the same graphs.
#include "graph/to_line.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace millrace;
using namespace millrace::graph;

namespace {

Graph sorted(Graph graph) {
  std::sort(graph.handlers.begin(), graph.handlers.end(),
            [](const Handler& a, const Handler& b) { return a.name < b.name; });
  return graph;
}

} // namespace

TEST_CASE("a line that is written again is the same graph") {
  for (const char* line :
       {"test.pattern ! null.sink", "test.pattern width=640 height=480 ! image.blur sigma=2 ! null.sink",
        "test.pattern name=v ! image.blur ! null.sink ; v. ! image.flip ! null.sink",
        "test.pattern ! image.blur ! image.blur ! null.sink", "test.pattern name=blur ! image.blur ! null.sink",
        "video.file path=a name=file ! draw.boxes name=boxes ! null.sink ; file. ! detect.people ! boxes.boxes",
        "test.number name=a ; test.number name=b ; test.mix name=m ! null.sink ; b. ! m. ; a. ! m.",
        "test.number name=a ! test.sum name=s ! null.sink ; s. ! s.other delay=1 initial=empty",
        "test.pattern name=v ; image.composite name=wall ! null.sink ; v. ! wall. policy=latest lag=2 ; v. ! wall.",
        "two.outputs name=t ; t.left ! null.sink ; t.right ! null.sink every=2 device=cpu on_error=skip",
        "draw.text text=\"two words\" box=\"it's\" empty=\"\" ! null.sink", "null.source ; null.source"}) {
    CAPTURE(line);
    const Graph graph = parse_line(line);
    const std::string written = to_line(graph);
    REQUIRE(written != "");
    CHECK(same(sorted(parse_line(written)), sorted(graph)));
    CHECK(to_line(parse_line(written)) == written);
  }
}

TEST_CASE("names that follow from the types are left out, and references have them") {
  CHECK(to_line(parse_line("test.pattern name=pattern ! image.blur ! null.sink")) ==
        "test.pattern name=pattern ! image.blur ! null.sink"); // a person gave it
  CHECK(to_line(parse_yaml("version: 1\nhandlers:\n  pattern: { type: test.pattern }\n"
                           "  boxes: { type: draw.boxes, inputs: { boxes: pattern } }\n",
                           "a.yaml")) == "test.pattern ; draw.boxes name=boxes ; pattern. ! boxes.boxes");
}

TEST_CASE("what no line can say is not written") {
  CHECK(to_line(parse_yaml("version: 1\nname: street\nhandlers:\n  a: { type: null.source }\n", "a.yaml")) == "");
  CHECK(to_line(parse_yaml("version: 1\nclocks: { c: { rate: 30 } }\nhandlers:\n  a: { type: null.source, clock: c }\n",
                           "a.yaml")) == "");
  CHECK(to_line(parse_yaml("version: 1\nstreams: { s: { items: [a] } }\nhandlers:\n"
                           "  a: { type: null.source, for_each: s }\n",
                           "a.yaml")) == "");
}
