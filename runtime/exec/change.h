// Changes of live parameters that are asked for while a run goes on: they are checked, and whoever asked is told the
// tick on which they take effect (semantics.md 2.7).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/run_state.h"

namespace millrace::exec {

// All changes of one request, by handler. Throws Failure for the first one that cannot be made: MR0301 for a handler
// that is not there, MR0310 to MR0313 for a parameter or value, MR0316 if it cannot change while this run goes on.
std::vector<RunState::Change> check_changes(const RunState& run, const std::vector<ParamChange>& changes);

// The same changes, of handlers as they are called now, by the node that begins the ticks of their clock.
std::vector<HomeChanges> by_home(const RunState& run, const std::vector<RunState::Change>& changes);

// Throws Failure (MR0316) for a change of a clock that begins its ticks on another node.
void require_home(const RunState& run, const std::vector<RunState::Change>& changes);

// Makes one request of these changes.
void ask_for(const RunState& run, std::vector<RunState::Change>& changes, const ChangesTaken& on_taken);

// The clock begins this tick, and so takes the changes of its handlers that were admitted for it. Tells whoever asked
// for them, if this is the last clock of the request.
void answer_taken(RunState& run, uint32_t clock, uint64_t index);

// Forgets the changes that all lanes of their handlers have taken in. Called under changes_mutex.
void forget_taken(RunState& run);

// The clock admits no more ticks: none takes what was asked of its handlers and not told yet. Tells whoever asked. Any
// thread.
void give_up_changes(RunState& run, uint32_t clock);
// The same for those clocks of the changes that are over already.
void give_up_late_changes(RunState& run, const std::vector<RunState::Change>& changes);

} // namespace millrace::exec
