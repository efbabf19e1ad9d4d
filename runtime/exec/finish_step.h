// finish() of handlers whose bodies enqueue, once the device is done with the tick (finish_step.cpp).
#pragma once

#include <cstdint>

#include "exec/body.h"

namespace millrace::exec {

struct FinishRun : StepRun, CallArguments {
  StepResult advance(uint64_t ordinal) override;

  BodyRun* body = nullptr;         // built
  std::atomic<uint64_t> passed{0}; // claimer: finish() was called for every ordinal below it, or is not due
};

// True if no work of the body is under way, on the device or in finish(), so that its handler may change or restart.
bool at_rest(const BodyRun& body);
// Called before a call of the body or of finish(): keeps the other one out until leave(). False if the other one is in
// the handler.
bool enter(BodyRun& body);
void leave(BodyRun& body);

} // namespace millrace::exec
