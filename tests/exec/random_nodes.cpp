// Random graphs over random nodes give what the rules say, whatever links do (semantics.md 7.13).
//
// MILLRACE_SEED=n tries the one graph of that seed, MILLRACE_GRAPHS=n another number of graphs than 200.
#include <doctest/doctest.h>

#include "cut_nodes.h"
#include "sample.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("7.13: random graphs over one to four nodes give what they give on one machine, with links that are cut") {
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = only >= 0 ? 1 : from_environment("MILLRACE_GRAPHS", part_of(200));
  Features features;
  int64_t accepted = 0;
  for (int64_t seed = only >= 0 ? only : 1; accepted < wanted; ++seed) {
    INFO("MILLRACE_SEED=", seed);
    Sample sample = draw_sample(static_cast<uint64_t>(seed), seed % 4 == 0 ? Values::large : Values::small);
    const Nodes nodes = cut_over_nodes(sample, static_cast<uint64_t>(seed));
    INFO(describe(sample), places(sample));
    const Way way{static_cast<uint32_t>(1 + seed % 4), seed % 3 == 0, {}, seed % 2 == 0};
    const Outcome outcome = try_run(sample, way, nodes);
    if (outcome.refused) {
      CAPTURE(outcome.error);
      ++features["refused with " + std::to_string(outcome.refused)];
      // A handler that another node reads holds its tick open, so its queues count as they would beside sync readers.
      const bool is_of_nodes = outcome.refused / 100 == 8 || outcome.refused == code::queue_too_shallow;
      if (!is_of_nodes) REQUIRE(outcome.refused == try_run(sample, way).refused);
      if (only >= 0) return;
      REQUIRE(seed < 5 * wanted + 10); // most must be accepted
      continue;
    }
    ++accepted;
    if (only >= 0) {
      Sample here = sample;
      for (auto& handler : here.pipeline.graph.handlers) handler.node = "";
      MESSAGE("one: ", difference_to_the_rules(sample, run_by_the_rules(sample.pipeline.graph, sample.script),
                                               try_run(here, way)));
    }
    REQUIRE(outcome.stuck == "");
    const Expected rules = run_by_the_rules(sample.pipeline.graph, sample.script);
    REQUIRE(difference_to_the_rules(sample, rules, outcome) == "");
    for (const auto& [name, count] : sample.features) features[name] += count;
    ++features[std::to_string(nodes.names.size()) + " nodes"];
    if (outcome.parcels > 0) ++features["parcels"];
    if (outcome.report.cut_again) ++features["cut again"];
    if (!outcome.ok) ++features["failed run"];
  }
  for (const auto& [name, count] : features) MESSAGE(name, ": ", count);
}
