// Fleets under faults that are drawn from a seed: MILLRACE_FLEETS=n says how many, MILLRACE_SEED=n which.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "observe/error_codes.h"
#include "tests/chance.h"
#include "tests/fleet/fleet_world.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::fleet {
namespace {

struct Totals {
  uint64_t fleets = 0, begun = 0, failed = 0, given_up = 0, refused = 0, kills = 0, cuts = 0, pauses = 0, twins = 0,
           streams = 0, began_anew = 0, compiles = 0, went_well = 0, came_back = 0, began_again = 0, away = 0;
};

FleetSetup draw_setup(Random& random) {
  FleetSetup setup;
  setup.nodes = static_cast<uint32_t>(random.between(1, 4));
  for (uint32_t node = 0; node < setup.nodes; ++node) setup.needed.push_back(node == 0 || chance(random, 500));
  setup.latency_ns_most = random.spread(kMs, 400 * kMs);
  setup.run_ns_most = random.spread(kSecond, 80 * kSecond);
  if (chance(random, 300)) setup.fails_per_mille = 400;
  if (chance(random, 200)) setup.unable_per_mille = 200;
  if (chance(random, 500)) setup.streams_most = 4;
  return setup;
}

void draw_fault(FleetWorld& world, const FleetSetup& setup, Totals& totals) {
  const auto& processes = world.processes();
  if (processes.empty()) return;
  const auto index = static_cast<uint32_t>(world.random.below(processes.size()));
  const uint64_t kind = world.random.below(100);
  if (kind < 40) {
    ++totals.cuts;
    world.cut(index, world.random.spread(kMs, 40 * kSecond));
  } else if (kind < 65) {
    ++totals.pauses;
    world.pause(index, world.random.spread(kMs, 20 * kSecond));
  } else if (kind < 85) {
    if (processes[index]->node == 0) return; // the coordinator's own
    ++totals.kills;
    world.kill(index);
  } else if (setup.nodes > 1) {
    ++totals.twins;
    world.begin(static_cast<uint32_t>(world.random.between(1, setup.nodes - 1)));
  }
}

// Each node has a process that may be waited for.
void complete(FleetWorld& world, const FleetSetup& setup) {
  for (uint32_t node = 0; node < setup.nodes; ++node)
    if (std::none_of(world.processes().begin(), world.processes().end(),
                     [&](const auto& process) { return process->node == node && !process->is_dead && !process->over; }))
      world.begin(node);
}

std::string describe(const FleetWorld& world) {
  std::string text = world.is_begun ? "begun" : "not begun";
  text += world.is_over ? ", over" : ", not over";
  for (const auto& process : world.processes())
    text += "; node" + std::to_string(process->node) + (process->is_dead ? " dead" : " alive") +
            (process->over ? " over" : "") +
            (process->finished ? " finished"
             : process->runs   ? " runs"
                               : "") +
            " revision " + std::to_string(process->member->revision());
  return text;
}

void check_the_end(const FleetWorld& world, const FleetSetup& setup, bool stopped) {
  const auto& processes = world.processes();
  for (uint32_t node = 0; node < setup.nodes; ++node) {
    const std::string& report = world.coordinator.report(node);
    if (!report.empty())
      CHECK_MESSAGE(std::any_of(processes.begin(), processes.end(),
                                [&](const auto& process) {
                                  return process->node == node && process->finished &&
                                         report == "report of " + std::to_string(process->number);
                                }),
                    "a report is of a process that finished");
    if (world.is_begun && !world.failure && setup.needed[node])
      CHECK_MESSAGE(!report.empty(), "a run that went well has the report of node ", node);
  }
  if (!stopped && !world.failure) CHECK(world.is_begun);
  for (const auto& process : processes) {
    if (process->is_dead) continue;
    // Cut off for long, refused as a twin, or told by the coordinator how it ended.
    const int told = process->over_error ? process->over_error->code : 0;
    const int was = world.failure ? world.failure->error.code : 0;
    CHECK_MESSAGE((told == was || told == 804 || told == 809), "told ", told, ", was ", was);
    const bool reported = world.coordinator.report(process->node) == "report of " + std::to_string(process->number);
    if (!process->own_failure || !reported) continue;
    REQUIRE(world.failure);
    if (world.failure->clock == process->own_failure->clock)
      CHECK_MESSAGE(world.failure->index <= process->own_failure->index, "the earliest failure counts");
  }
}

// All processes that took part to the end know the same streams to be over, each by the earliest failure of its latest
// epoch on any node whose report counts.
void check_streams(const FleetWorld& world, Totals& totals) {
  const std::map<std::string, FailedTick>* told = nullptr;
  for (const auto& process : world.processes()) {
    const int code = process->over_error ? process->over_error->code : 0;
    const bool to_the_end = !process->is_dead && process->over && code != 804 && code != 806 && code != 809;
    if (!to_the_end || process->started_revision == 0 || process->started_revision != world.coordinator.revision())
      continue;
    if (!told) told = &process->told_streams;
    CHECK(*told == process->told_streams);
  }
  if (!told) return;
  for (const auto& process : world.processes()) {
    if (world.coordinator.report(process->node) != "report of " + std::to_string(process->number)) continue;
    for (const auto& [clock, failed] : process->own_streams) {
      REQUIRE(told->contains(clock));
      CHECK(!failed.counts_before(told->at(clock)));
    }
  }
  totals.streams += told->size();
  for (const auto& [clock, failed] : *told) totals.began_anew += failed.epoch > 0;
}

void simulate(uint32_t seed, Totals& totals) {
  Random draws(seed);
  const FleetSetup setup = draw_setup(draws);
  FleetWorld world(draws.next(), setup);
  world.begin(0);
  const int64_t faults_until_ns = draws.spread(kSecond, 60 * kSecond);
  const bool stops = chance(draws, 200);
  const int64_t stops_at_ns = draws.between(0, faults_until_ns);
  bool stopped = false;
  for (uint32_t node = 1; node < setup.nodes; ++node) {
    world.run_until(world.time.now_ns() + draws.spread(kMs, kSecond));
    world.begin(node);
  }
  while (world.broken.empty() && world.time.now_ns() < faults_until_ns && !world.is_over) {
    world.run_until(world.time.now_ns() + draws.spread(kMs, 10 * kSecond));
    draw_fault(world, setup, totals);
    if (chance(draws, 300)) complete(world, setup);
    if (stops && !stopped && world.time.now_ns() >= stops_at_ns) {
      stopped = true;
      world.stop();
    }
  }
  // From here on people start what is not there, and nothing else happens.
  bool ended = false;
  for (int i = 0; i < 30 && !ended; ++i) {
    if (!world.is_over) complete(world, setup);
    ended = world.run_to_the_end(10 * kSecond);
  }
  CHECK(world.broken == "");
  CHECK_MESSAGE(ended, describe(world));
  check_the_end(world, setup, stopped);
  check_streams(world, totals);
  ++totals.fleets;
  totals.begun += world.is_begun;
  totals.failed += world.failure.has_value();
  totals.went_well += world.is_begun && !world.failure;
  totals.given_up += world.given_up;
  totals.refused += world.refusals;
  totals.compiles += world.compiles;
  totals.began_again += world.failure && world.failure->error.code == code::began_again;
  totals.away += world.failure && world.failure->error.code == code::node_away;
  for (uint32_t node = 0; node < setup.nodes; ++node) {
    const auto started = std::count_if(world.processes().begin(), world.processes().end(), [&](const auto& process) {
      return process->node == node && process->started_revision != 0;
    });
    totals.came_back += started > 1;
  }
}

} // namespace

TEST_CASE("fleets whose links are cut and whose processes stop, die and come twice start once and end as one") {
  const char* const chosen = std::getenv("MILLRACE_FLEETS");
  // Fewer than 800 may meet no node that is given up.
  const uint32_t count = chosen ? static_cast<uint32_t>(std::stoul(chosen))
                                : static_cast<uint32_t>(std::max<int64_t>(800, test::part_of(2000)));
  Totals totals;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t seed = random_seed() * 1'000'003u + i;
    INFO("fleet ", i, " of MILLRACE_SEED=", random_seed());
    simulate(seed, totals);
  }
  MESSAGE(totals.fleets, " fleets, ", totals.begun, " begun, ", totals.went_well, " went well, ", totals.failed,
          " failed, ", totals.given_up, " nodes given up, ", totals.refused, " processes refused, ", totals.compiles,
          " compiled, ", totals.came_back, " nodes came back, ", totals.began_again, " ended because one did, ",
          totals.away, " because one was away; ", totals.cuts, " cuts, ", totals.pauses, " pauses, ", totals.kills,
          " kills, ", totals.twins, " twins; ", totals.streams, " streams failed, ", totals.began_anew,
          " of them after they had begun anew");
  // Draws that meet none of these would prove nothing.
  CHECK(totals.went_well > 0);
  CHECK(totals.streams > totals.began_anew);
  CHECK(totals.began_anew > 0);
  for (const uint64_t met : {totals.failed, totals.given_up, totals.refused, totals.came_back, totals.began_again})
    CHECK(met > 0);
}

} // namespace millrace::fleet
