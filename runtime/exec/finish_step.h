// finish() of handlers whose bodies enqueue, once the device is done with the tick (finish_step.cpp).
#pragma once

#include <cstdint>

#include "exec/step.h"

namespace millrace::exec {

StepResult run_finish(StepRun& step, uint64_t ordinal);
// Of a body: nothing of it is under way, on the device or in finish(), so that its handler may change or restart.
bool at_rest(const StepRun& body);
// Of a body about to be called: keeps finish() out until leave(). False where it is in there.
bool enter(StepRun& body);
void leave(StepRun& body);
// Of a body or finish() that failed, by the handler's policy (2.6). A restart waits until nothing of it is under way.
void mind_body_error(StepRun& body, uint64_t index);
// Restarts a handler that is at rest, where its body or finish() failed and asked for that. True where it did. One that
// does not start ends the run at tick `index`.
bool restart_if_asked(StepRun& body, uint64_t index);

} // namespace millrace::exec
