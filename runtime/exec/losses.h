// Counts of values that did not reach their readers, by edge and cause, so far. Any thread may ask.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "exec/cause.h"

namespace millrace::plan {
struct EdgePlan;
}

namespace millrace::exec {

class RunState;
struct ChannelRun;
struct HandlerRun;
struct InputRun;
struct PlanRun;
struct SourceState;

using CountsByCause = std::map<std::string, uint64_t>;

// Adds those that are not 0, by their names.
void add_drops(const Drops& drops, CountsByCause& dropped);
void add_drops(const Drops& drops, Drops& sum);

// The parts of a run that count what passes on an edge.
struct EdgePlaces {
  // The handlers that read the edge, one for each lane, and their inputs.
  std::vector<std::pair<const HandlerRun*, const InputRun*>> readers;
  const InputRun* item = nullptr; // if the edge leads into a group: where a stream's values are taken
  // The channels that the edge leads through, and its entry in each.
  std::vector<std::pair<ChannelRun*, uint32_t>> channels;
  std::vector<const SourceState*> sources; // that give the values, and may pass some over
};
// By edge of the plan.
std::vector<EdgePlaces> places_of_edges(const RunState& run);

// The clock of the handler that an edge leads to; kNone: that is on another node.
uint32_t target_clock(const PlanRun& planned, const plan::EdgePlan& edge);
// All that the reader on an edge did not get.
Drops dropped_on(const EdgePlaces& places);
// All that the readers of one clock did not get.
Drops lost_by_clock(const RunState& run, uint32_t clock);
// All that was dropped on edges. A channel that several edges share counts once.
Drops all_drops(const RunState& run);

} // namespace millrace::exec
