// The order of steps, and what follows from it. Private to runtime/plan.
#pragma once

#include "plan/draft.h"
#include "plan/pace.h"
#include "plan/step.h"

namespace millrace::plan {

// Renumbers the steps so that every dependency within a tick points forwards.
void order_steps(Draft& draft);
// Updates all references to steps: position[old] = new.
void renumber(Plan& plan, const std::vector<uint32_t>& position);
// Sums max_pending along the paths: steps of one segment must share the sum, or a tick would wait for itself.
void find_levels(Draft& draft);
// True if the channel's reader is in another pace of the same clock and waits for its values.
bool is_waited_for_apart(const Plan& plan, const Channel& channel);
// True if a result that the clock's handlers may owe is read by delay or lag, or waited for in another pace. Such a
// reader is placed by levels alone, so nothing may be owed for longer than levels say.
bool reads_owed_aside(const Plan& plan, uint32_t clock);
// True if the reader waits for its source at the time of its own tick, as levels have it: it reads this tick, or one by
// `delay` whose value may be owed for as long as the delay is. Searches for circles of waits rely on this.
bool waits_in_time(const Plan& plan, const Step& reader, const StepInput& input);

// The ticks that are pending before a pace begins: the level of its gate.
uint32_t base_level(const Plan& plan, const Pace& pace);
// The entry that the step comes after, because a pace begins a tick as a whole; kNone: it begins with its clock.
uint32_t entry_before(const Plan& plan, uint32_t step);
// Refuses loops whose delay, or queue whose depth, is too short for what is pending on their way (semantics.md 2.3).
void check_pending_loops(Draft& draft);

} // namespace millrace::plan
