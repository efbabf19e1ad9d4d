// Runs of several nodes joined by real sessions over a simulated network (semantics.md 7.13): outputs are those of one
// machine, whatever the network does, and no parcel is lost or comes twice.
#include "embed/link_ends.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "linked_nodes.h"

namespace millrace::test {
namespace {

using net::kMillisecond, net::kSecond;

// Puts the named handlers on the node; the others are at home.
void put(Pipeline& pipeline, const std::string& node, const std::vector<std::string>& handlers) {
  for (graph::Handler& handler : pipeline.graph.handlers) {
    if (std::find(handlers.begin(), handlers.end(), handler.name) != handlers.end()) handler.node = node;
    if (handler.node.empty()) handler.node = "home";
  }
}

// Slow, cut into slices of a few bytes, and never the same twice.
Wires bad_wires(uint64_t seed) {
  Wires wires;
  wires.seed = seed;
  wires.line = [](net::sim::Line& line, net::Random& random) {
    line.latency_ns = random.spread(20'000, 20 * kMillisecond);
    line.jitter_ns = random.chance(500) ? 0 : random.between(0, 2 * line.latency_ns);
    line.bytes_per_second = random.chance(500) ? 0 : static_cast<uint64_t>(random.spread(50'000, 10'000'000));
    constexpr size_t kSlices[] = {0, 1, 7, 100};
    line.slice_most = kSlices[random.below(4)];
  };
  wires.wake_ns_most = 100'000;
  wires.faults = 12;
  wires.faults_ns = kSecond;
  return wires;
}

void check_the_same(const Ran& expected, const Ran& ran, const LinkedNodes& nodes) {
  REQUIRE(nodes.broken() == "");
  REQUIRE(ran.error.what == "");
  REQUIRE(ran.ok);
  for (const auto& [name, seen] : expected.all_seen()) CHECK(ran.seen_if_any(name) == seen);
}

} // namespace

TEST_CASE("7.13: a line whose middle is on another node gives what it gives on one, over a link") {
  Pipeline pipeline = line({"t.relay", "t.relay", "t.relay"}, "seen", 50);
  const Ran expected = run(pipeline);
  put(pipeline, "gpu", {"h2"});
  LinkedNodes nodes(pipeline, {"home", "gpu"}, Wires{});
  check_the_same(expected, nodes.run(), nodes);
  CHECK(nodes.parcels() == 100);
}

TEST_CASE("7.13: two nodes over a bad network give what one gives") {
  Pipeline pipeline(
      "t.count name=source count=200 size=40 ! t.relay name=a add=1000 ! t.relay name=b log=b ! "
      "t.join name=c ! t.sink name=sink log=seen; source. ! c.");
  const Ran expected = run(pipeline);
  put(pipeline, "gpu", {"a", "b"});
  uint64_t cuts = 0, came_back = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed ", seed);
    LinkedNodes nodes(pipeline, {"home", "gpu"}, bad_wires(seed));
    check_the_same(expected, nodes.run(), nodes);
    CHECK(nodes.parcels() == 400);
    cuts += nodes.cuts();
    came_back += nodes.sessions_came_back();
  }
  CHECK(cuts > 20);
  CHECK(came_back > 10);
}

} // namespace millrace::test
