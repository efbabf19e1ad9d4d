// The values that live parameters have now, by the changes whose ticks have come (semantics.md 2.7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/run_state.h"

namespace millrace::exec {

// The change has its tick, from which on the handler or its group works with the value. Called under changes_mutex.
void record_value(RunState& run, const RunState::Change& change);
// The handler has taken the value. Called under changes_mutex.
void confirm_value(RunState& run, const RunState::Change& change);
// The handler cannot hold the value, and goes on with the one that it took last. Called under changes_mutex.
void restore_value(RunState& run, const RunState::Change& change);

// Another stream's handlers take the places of those of this clock, with the values that it says.
void forget_values(RunState& run, uint32_t clock);

// The handlers that this node runs, in the order of the plan, without those of streams that are not there.
std::vector<HandlerValues> values_now(RunState& run);

} // namespace millrace::exec
