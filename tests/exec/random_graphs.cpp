// Random graphs give the same bytes with any number of threads, on the host and on simulated devices, whatever the
// order in which those run their work (semantics.md 2.5).
//
// MILLRACE_SEED=n tries the one graph of that seed, MILLRACE_GRAPHS=n another number of graphs than 60.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "sample.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

plan::Hop with_access(plan::Hop hop) {
  hop.price.access_us_per_byte = 0;
  return hop;
}

bool has_pack(const plan::Plan& plan) {
  const std::vector<CopyView> copies = PlanView(plan).copies();
  return std::any_of(copies.begin(), copies.end(), [](const CopyView& copy) { return copy.values > 1; });
}

// Between the two devices, and what they read in place of the host's memory and each other's.
const std::vector<plan::Hop> kPeerCopies = {copy_hop("sim:0", "sim:1", 1), copy_hop("sim:1", "sim:0", 1)};
const std::vector<plan::Hop> kAccess = {access_hop("sim:0", "sim:1"), access_hop("sim:1", "sim:0"),
                                        with_access(copy_hop("cpu", "sim:0", 1)),
                                        with_access(copy_hop("cpu", "sim:1", 1))};

// On devices a sample gives what it gave on the host: with any threads and order of work, with its copies packed, cut
// once more, and with hops between the devices.
void require_the_same_on_devices(const Sample& sample, const Outcome& expected, Features& features) {
  for (const uint32_t workers : {1u, 2u, 8u}) {
    INFO("on devices, workers ", workers);
    REQUIRE(difference(expected, try_run(sample, {workers, true})) == "");
  }
  for (const auto adversary : {std::optional<uint64_t>{}, std::optional<uint64_t>{5}}) {
    INFO("copies packed, adversary: ", adversary.has_value());
    const Outcome outcome = try_run(sample, {2, true, adversary, false, {}, {}, true});
    REQUIRE(difference(expected, outcome) == "");
    if (!adversary && has_pack(outcome.plan)) ++features["packed copy"];
  }
  for (const bool on_devices : {false, true}) {
    INFO("cut once more, on devices: ", on_devices);
    const Outcome outcome = try_run(sample, {3, on_devices, {}, true});
    REQUIRE(difference(expected, outcome) == "");
    if (!outcome.report.cut_again) continue;
    ++features["cut once more"];
    for (const std::string name : {"pending", "queue block", "every"})
      if (sample.features.contains(name)) ++features["cut once more with " + name];
    if (on_devices && sample.features.contains("device")) ++features["cut once more with devices"];
  }
  for (const uint64_t adversary : {1u, 2u, 3u}) {
    INFO("on devices, adversary ", adversary);
    REQUIRE(difference(expected, try_run(sample, {adversary == 1 ? 1u : 2u, true, adversary})) == "");
  }
  for (const auto* hops : {&kPeerCopies, &kAccess}) {
    INFO("on devices that ", std::string(hops == &kAccess ? "read in place" : "copy from each other"));
    REQUIRE(difference(expected, try_run(sample, {2, true, {}, false, {}, *hops})) == "");
    REQUIRE(difference(expected, try_run(sample, {1, true, 4, false, {}, *hops})) == "");
  }
}

} // namespace

TEST_CASE(
    "2.5: under free, random graphs give what the rules say, with any threads, devices and order of device work") {
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = only >= 0 ? 1 : from_environment("MILLRACE_GRAPHS", part_of(60));
  Features features;
  int64_t accepted = 0, tried = 0;
  for (int64_t seed = only >= 0 ? only : 1; accepted < wanted; ++seed, ++tried) {
    REQUIRE(tried < wanted * 3); // most must be accepted
    INFO("MILLRACE_SEED=", seed);
    const Sample sample = draw_sample(static_cast<uint64_t>(seed), Values::small);
    INFO(describe(sample));
    if (only >= 0) MESSAGE(describe(sample)); // also where the process does not outlive the run
    const Outcome expected = try_run(sample, {});
    if (expected.refused) {
      INFO("refused with ", expected.refused);
      REQUIRE(expected.refused / 100 == 4);
      ++features["refused"];
      if (only >= 0) return;
      continue;
    }
    ++accepted;
    REQUIRE(expected.stuck == "");
    const Expected rules = run_by_the_rules(sample.pipeline.graph, sample.script);
    REQUIRE(difference_to_the_rules(sample, rules, expected) == "");
    for (const auto& [name, count] : sample.features) features[name] += count;
    if (!expected.ok) ++features["failed run"];
    for (const uint32_t workers : {2u, 8u}) {
      CAPTURE(workers);
      REQUIRE(difference(expected, try_run(sample, {workers})) == "");
    }
    require_the_same_on_devices(sample, expected, features);
  }
  if (only >= 0) return;
  for (const std::string name : {"join",
                                 "every",
                                 "latest",
                                 "lag",
                                 "delay into a required input",
                                 "delay into an optional input",
                                 "loop",
                                 "queue block",
                                 "queue drop_oldest",
                                 "queue drop_newest",
                                 "silent",
                                 "pending",
                                 "keeps",
                                 "in place",
                                 "forward",
                                 "lanes",
                                 "skip",
                                 "bypass",
                                 "fail",
                                 "failed run",
                                 "device",
                                 "capturable",
                                 "packed copy",
                                 "cut once more",
                                 "cut once more with pending",
                                 "cut once more with queue block",
                                 "cut once more with every",
                                 "cut once more with devices",
                                 "live change"}) {
    CAPTURE(name);
    CHECK(features[name] >= wanted / 10);
  }
}
