// One seed, one history: two nodes over a bad network, with processes that stop, die and come twice.
//
// A world has the time, the network, the history and the processes, for tests that say what happens. simulate() draws
// all of it from a seed: the lines, the crossings, the clocks and the faults. After the faults the network is healed,
// and then everything has to drain within a bounded time: what still had a place arrives, all crossings come to their
// ends, and both sides leave. Nothing of a link is on a disk yet; a simulated disk would be a part of the world.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/net/sim/process.h"

namespace millrace::net::sim {

inline constexpr Address kDialler = 1, kListener = 2;

class World {
 public:
  explicit World(uint64_t seed);

  // The setup of a process of one side with a new session. Processes of one side have one identity.
  ProcessSetup setup(bool dials);
  // Add crossings before the first process: their numbers are their places.
  Process& start(const ProcessSetup& setup);
  Process& start(bool dials) { return start(setup(dials)); }
  void both_lines(const std::function<void(Line&)>& change);
  // Each end learns of it after at most that time.
  void cut_all(int64_t learns_ns);

  // Until that time, or the first failure.
  void run_until(int64_t at_ns);
  void run_for(int64_t for_ns) { run_until(time.now_ns() + for_ns); }
  // True if `done` became true in that time; it is asked after each event.
  bool run_until(const std::function<bool()>& done, int64_t within_ns);

  Random random;
  device::VirtualTime time;
  Network network;
  History history;
  std::vector<CrossingSetup> crossings;
  std::vector<std::unique_ptr<Process>> processes; // the dead ones among them
};

// Two processes that have sent and got all: both ends' counts agree, and nothing of the last pairing is missing.
void check_counts(World& world, const Process& dialler, const Process& listener);

// Sums over histories.
struct Totals {
  uint64_t histories = 0, virtual_seconds = 0, pairings = 0;
  uint64_t given = 0, arrived = 0, lost = 0, left_out = 0;
  uint64_t cuts = 0, half_open = 0, vanished = 0, holds = 0, blocks = 0, stops = 0, kills = 0, twins = 0,
           lost_dials = 0, changes = 0;
  uint64_t leaves_in_faults = 0;
  uint64_t said = 0, heard = 0; // messages
};
// A paragraph for people.
std::string describe(const Totals& totals);

struct Outcome {
  uint64_t hash = 0;
  std::string failure; // "" if all promises were kept
};
Outcome simulate(uint64_t seed, Totals& totals);

} // namespace millrace::net::sim
