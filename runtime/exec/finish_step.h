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

} // namespace millrace::exec
