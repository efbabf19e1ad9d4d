// Random graphs over random nodes give what the rules say, whatever links do (semantics.md 7.13).
//
// MILLRACE_SEED=n tries the one graph of that seed, MILLRACE_GRAPHS=n another number of graphs than 200.
#include <doctest/doctest.h>

#include <map>
#include <optional>

#include "clock_graphs.h"
#include "cutting.h"
#include "observe/error_codes.h"
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
    const Nodes nodes = cut_at_random(sample.pipeline, static_cast<uint64_t>(seed));
    INFO(describe(sample), places_of(sample.pipeline));
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

TEST_CASE("8.1, 8.2, 8.3, 8.11: a random graph of several clocks over nodes gives what it gives on one machine") {
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = from_environment("MILLRACE_CLOCKS", part_of(200));
  std::map<std::string, int64_t> ways;
  for (int64_t seed = only >= 0 ? only : 1; seed <= (only >= 0 ? only : wanted); ++seed) {
    CAPTURE(seed);
    Pipeline p = draw_clocks(static_cast<uint64_t>(seed));
    const int refused = code_of(p, clocks_setup(1, true));
    const Nodes nodes = cut_at_random(p, static_cast<uint64_t>(seed));
    INFO(text_of(p), "\n", places_of(p));
    const Setup setup = seed % 3 == 0 ? measured_setup() : clocks_setup(static_cast<uint32_t>(1 + seed % 2), true);
    std::optional<Spread> spread;
    try {
      spread.emplace(p, nodes, setup);
    } catch (const Failure& failure) {
      CAPTURE(failure.what());
      const int code = failure.error().code;
      ++ways["refused with " + std::to_string(code) + (refused == 0 ? ", on one machine not" : "")];
      // On one node handlers share paces and channels, so that fewer windows have to be held.
      if (code / 100 != 8 && code != code::window_too_small && code != code::queue_too_shallow)
        REQUIRE(code == refused);
      continue;
    }
    const Ran ran = spread->run();
    if (ran.error.code != code::source_off_rate) REQUIRE(ran.error.what == "");
    // Feeds have room for what is owed on other ways, whatever the depth of a queue is.
    REQUIRE((refused == 0 || refused == code::queue_too_shallow));
    if (refused != 0) continue;
    const Ran expected = run(p, clocks_setup(1, true));
    if (expected.error.code == code::source_off_rate) {
      ++ways["off its rate"];
      continue;
    }
    REQUIRE(expected.ok);
    for (const auto& [name, log] : expected.all_seen()) {
      CAPTURE(name);
      REQUIRE(log == ran.seen_if_any(name));
    }
    ++ways[std::to_string(nodes.names.size()) + " nodes"];
    if (spread->parcels() > 0) ++ways["parcels"];
    for (const graph::Clock& clock : p.graph.clocks) ways["homes that clocks name"] += !clock.node.empty();
  }
  if (only >= 0) return;
  for (const auto& [way, count] : ways) MESSAGE(way, ": ", count);
}
