// One graph over several nodes: far paces, the ends of crossings, and the same outputs as on one machine.
#include <doctest/doctest.h>

#include "spread.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Puts the named handlers on the node.
void put(Pipeline& pipeline, const std::string& node, const std::vector<std::string>& handlers) {
  for (const std::string& name : handlers)
    for (graph::Handler& handler : pipeline.graph.handlers)
      if (handler.name == name) handler.node = node;
}

Nodes two(int64_t latency_ns) {
  Nodes nodes;
  nodes.names = {"home", "gpu"};
  nodes.link = [=](size_t, size_t) { return Link{latency_ns, 0, {}}; };
  return nodes;
}

} // namespace

TEST_CASE("7.13: a line whose middle is on another node gives what it gives on one") {
  Pipeline pipeline = line({"t.relay", "t.relay", "t.relay"}, "seen", 20);
  const std::vector<Seen> expected = run(pipeline).seen("seen");
  put(pipeline, "gpu", {"h2"});
  Spread spread(pipeline, two(3 * kMs));
  const Ran ran = spread.run();
  REQUIRE(ran.error.what == "");
  REQUIRE(ran.ok);
  CHECK(ran.seen("seen") == expected);
  CHECK(spread.parcels() > 0);
}

TEST_CASE("7.4: a reader on another node learns that an input has ended, as one on the same node does") {
  Pipeline pipeline(
      "t.count name=short count=3 ! t.ended name=sink log=ended ; "
      "t.count name=long count=6 ! sink. short. ! t.relay name=between ! sink.");
  const Ran expected = run(pipeline);
  CHECK(expected.seen("ended").at(2).values == std::vector<int64_t>{0, 0, 0});
  CHECK(expected.seen("ended").at(3).values == std::vector<int64_t>{1, 0, 1});
  put(pipeline, "gpu", {"sink"});
  Spread nodes(pipeline, two(3 * kMs));
  const Ran ran = nodes.run();
  REQUIRE(ran.error.what == "");
  CHECK(ran.seen("ended") == expected.seen("ended"));
}
