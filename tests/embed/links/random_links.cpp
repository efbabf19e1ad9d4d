// Random graphs over random nodes, joined by real sessions over a bad network, give what the rules say (semantics.md
// 7.13).
//
// MILLRACE_SEED=n tries the one graph of that seed, MILLRACE_GRAPHS=n another number of graphs than 40.
#include <doctest/doctest.h>

#include "linked_nodes.h"
#include "tests/chance.h"
#include "tests/exec/cutting.h"
#include "tests/exec/sample.h"
#include "tests/part.h"

namespace millrace::test {
namespace {

using net::kMillisecond, net::kSecond;

// The network of a seed: a third of them are quiet, the others have faults in their first second.
Wires draw_wires(uint64_t seed) {
  Wires wires;
  wires.seed = seed;
  wires.data_lanes = 1 + static_cast<uint32_t>(seed % 3);
  wires.checks_bodies = seed % 2 == 0;
  wires.wake_ns_most = seed % 4 == 0 ? 0 : 200'000;
  wires.faults = static_cast<uint32_t>(seed % 3) * 8;
  wires.faults_ns = kSecond;
  wires.line = [](net::sim::Line& line, Random& random) {
    line.latency_ns = random.spread(20'000, 40 * kMillisecond);
    line.jitter_ns = chance(random, 500) ? 0 : random.between(0, 2 * line.latency_ns);
    line.bytes_per_second = chance(random, 500) ? 0 : static_cast<uint64_t>(random.spread(50'000, 100'000'000));
    constexpr size_t kSlices[] = {0, 0, 1, 7, 100, 1500};
    line.slice_most = kSlices[random.below(6)];
  };
  return wires;
}

// Sums over all graphs.
struct Sums {
  uint64_t parcels = 0, cuts = 0, came_back = 0, copied = 0, allocations = 0, graphs_with_parcels = 0;
};

} // namespace

TEST_CASE("7.13: random graphs over one to four nodes and a bad network give what they give on one machine") {
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = only >= 0 ? 1 : from_environment("MILLRACE_GRAPHS", part_of(40));
  Sums sums;
  int64_t accepted = 0;
  for (int64_t seed = only >= 0 ? only : 1; accepted < wanted; ++seed) {
    INFO("MILLRACE_SEED=", seed);
    Sample sample = draw_sample(static_cast<uint64_t>(seed), seed % 4 == 0 ? Values::large : Values::small);
    const Nodes nodes = cut_at_random(sample.pipeline, static_cast<uint64_t>(seed));
    INFO(describe(sample), places_of(sample.pipeline));
    const Way way{static_cast<uint32_t>(1 + seed % 4), seed % 3 == 0, {}, seed % 2 == 0};
    const auto over_links = [&](const Pipeline& pipeline, const Setup& setup, uint64_t& parcels) {
      LinkedNodes linked(pipeline, nodes.names, draw_wires(static_cast<uint64_t>(seed)), setup);
      const Ran ran = linked.run();
      REQUIRE(linked.broken() == "");
      parcels = linked.parcels();
      sums.parcels += parcels;
      sums.graphs_with_parcels += parcels > 0;
      sums.cuts += linked.cuts();
      sums.came_back += linked.sessions_came_back();
      sums.copied += linked.bytes_copied();
      sums.allocations += linked.allocations();
      return ran;
    };
    const Outcome outcome = try_run(sample, way, over_links);
    if (outcome.refused) {
      CAPTURE(outcome.error);
      if (only >= 0) return;
      REQUIRE(seed < 5 * wanted + 10); // most must be accepted
      continue;
    }
    ++accepted;
    REQUIRE(outcome.stuck == "");
    const Expected rules = run_by_the_rules(sample.pipeline.graph, sample.script);
    REQUIRE(difference_to_the_rules(sample, rules, outcome) == "");
  }
  CHECK(sums.allocations == 0);
  MESSAGE(sums.graphs_with_parcels, " graphs with parcels, ", sums.parcels, " parcels, ", sums.cuts, " cuts, ",
          sums.came_back, " times back, ", sums.copied, " bytes copied in sessions");
}

} // namespace millrace::test
