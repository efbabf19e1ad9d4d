// One firing of a handler: its inputs, its call, and what becomes of its outputs (firing.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "exec/handler_run.h"

namespace millrace::exec {

// True if everything that the firing waits for is there.
bool ready(const HandlerRun& step, uint64_t ordinal);
// Settles the tick if the handler is not called on it. Else false, and the inputs are in raw_inputs.
bool passes_over(HandlerRun& step, uint64_t ordinal);
// Notes the times of a call that has returned.
void trace_call(HandlerRun& step, int64_t begin, int64_t end);
void sample(HandlerRun& step, int64_t ns);
// Fires by the fast way. False if this firing needs the other way; nothing has been done then.
bool run_flat(HandlerRun& step, uint64_t ordinal);
// Writes the tiny calls since the last look at the clock into the trace, each with an equal part of the time.
void trace_tiny_calls(SegmentRun& segment);
void flatten(HandlerRun& step);                       // decides whether a step may go the fast way
void settle_call(HandlerRun& step, uint64_t ordinal); // after virtual time has passed
void stamp(StepRun& step, uint64_t ordinal);
// The number by which changes are admitted for this ordinal: the tick's index, in a group's pace that of the firing.
uint64_t change_index(const StepRun& step, uint64_t ordinal);
// Applies live parameter changes up to this number (2.7). No thread may be in the handler.
void apply_changes(HandlerRun& step, uint64_t index);
// Calls process() and, if it returns MR_OK, finish() at once. Neither a body on the host nor one that sim runs by
// itself leaves device work to wait for.
inline mr_status run_on_host(const HandlerRun& step, mr_tick* tick) {
  const mr_status status = step.process(step.self, tick);
  if (status != MR_OK || !step.finish) return status;
  void* const state = std::exchange(tick->state, nullptr); // it is not there after a GPU body either
  const mr_status finished = step.finish(step.self, tick);
  tick->state = state;
  return finished;
}
// Apply the handler's policy after a failed call, or after a failed drain or reset between two calls (2.6).
void fail_call(HandlerRun& step, const mr_tick_info& info);
void fail_outside_process(HandlerRun& step, uint64_t ordinal);
// Calls the handler for one firing and deals with errors, restarts and live parameters. The outputs are in raw_outputs.
mr_status call(HandlerRun& step, const mr_tick_info& info);

} // namespace millrace::exec
