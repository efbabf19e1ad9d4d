// finish() of handlers whose bodies enqueue, once the device is done with the tick (finish_step.cpp).
#pragma once

#include <cstdint>

#include "exec/body.h"

namespace millrace::exec {

struct FinishRun : StepRun, CallArguments {
  StepResult advance(uint64_t ordinal) override;

  BodyRun* body = nullptr;         // built
  std::atomic<uint64_t> passed{0}; // claimer: ordinals below it are called, or not to be
};

// Of a body: nothing of it is under way, on the device or in finish(), so that its handler may change or restart.
bool at_rest(const BodyRun& body);
// Of a body about to be called: keeps finish() out until leave(). False where it is in there.
bool enter(BodyRun& body);
void leave(BodyRun& body);

} // namespace millrace::exec
