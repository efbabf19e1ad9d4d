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

// Makes one request of these changes.
void ask_for(const RunState& run, std::vector<RunState::Change>& changes, const ChangesTaken& on_taken);

// A change of the request takes effect on that tick. Adds the request to `taken` once every clock has taken its part.
// Called under changes_mutex.
void note_taken(const plan::Clock& clock, uint64_t index, std::shared_ptr<RunState::Request> request,
                std::vector<std::shared_ptr<RunState::Request>>& taken);

} // namespace millrace::exec
