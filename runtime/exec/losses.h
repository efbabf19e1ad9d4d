// Counts of values that did not reach their readers, by edge and cause, so far. Any thread may ask.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "exec/channel.h"

namespace millrace::plan {
struct EdgePlan;
}

namespace millrace::exec {

class RunState;
struct PlanRun;
struct GiveRun;

using CountsByCause = std::map<std::string, uint64_t>;

void add_drops(const Drops& drops, CountsByCause& dropped);
void add_counts(const CountsByCause& counts, CountsByCause& sum);
// The clock of the handler that an edge leads to; kNone: that is on another node.
uint32_t target_clock(const PlanRun& planned, const plan::EdgePlan& edge);
// The step that reads the edge, if it leads into a group.
const GiveRun* give_of(const PlanRun& planned, const plan::EdgePlan& edge);
// All that the reader on an edge did not get.
CountsByCause dropped_on(const RunState& run, uint32_t edge);
// All that the readers of one clock did not get.
CountsByCause lost_by_clock(const RunState& run, uint32_t clock);
// Adds what was dropped on all edges. A channel that several edges share counts once.
void count_drops(const RunState& run, CountsByCause& dropped);

} // namespace millrace::exec
