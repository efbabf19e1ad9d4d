// The state that the run keeps for a handler from tick to tick (semantics.md 4.7): one piece of memory where its body
// runs, at an address that never changes. It is zero by the handler's first call, and again by the first call after
// each reset(). On the host a reset clears it at once. On a device earlier ticks may still be under way then, so it is
// cleared in the order of the handler's stream, before the next body.
//
// Here a handler is also started and stopped: it is told the device of its body, and on a GPU that is the current
// device of the calling thread (rule 4.14). Every start, reset and stop of a run comes through here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "millrace/abi.h"

namespace millrace::plan {
struct Step;
}

namespace millrace::exec {

class RunState;
struct BodyRun;
struct HandlerRun;

// Takes memory where the step runs; the address is the one that the host sees. Throws Failure if there is no room for
// `purpose`.
std::byte* take_memory(RunState& run, const plan::Step& step, uint64_t bytes, const std::string& purpose);
// Takes the memory that the plan has for the state of this handler, if it has one.
void make_state(RunState& run, HandlerRun& step);
mr_status start_handler(HandlerRun& step);
mr_status reset_handler(HandlerRun& step);
mr_status stop_handler(HandlerRun& step);
// Clears the state if a reset came since the last call. Called before each body on a device: within the body's own
// command if it runs by itself, else by the thread that submits it.
void clear_state_if_due(BodyRun& step);

} // namespace millrace::exec
