// How the slot of an output comes to be. Every output of every step, on the host and on devices, becomes one of these
// (semantics.md 2.1): a value; a value that a device may still leave out; nothing, with the reason.
#pragma once

#include <cstdint>
#include <span>

#include "exec/handler_run.h"
#include "exec/presence.h"

namespace millrace::exec {

inline Slot nothing(Cause cause) {
  Slot slot;
  slot.cause = cause;
  return slot;
}

// The bytes are there once the fence is done.
inline Slot value_in(memory::Block& block, const device::Fence& fence = {}) {
  return {block.record, block.data, &block, fence, false, Cause::silent};
}

// Once the fence is done the block says whether there is a value.
inline Slot awaited(memory::Block& block, const device::Fence& fence = {}) {
  return {block.record, block.data, &block, fence, true, Cause::silent};
}

inline Slot& settle(OutputRun& output, uint64_t ordinal, const Slot& slot) { return output.at(ordinal) = slot; }

// Of a plain step, whose slots never carry a fence: the words that there are to a value.
inline void settle_plain(Slot& slot, const Slot& made) {
  slot.value = made.value;
  slot.data = made.data;
  slot.block = made.block;
  slot.cause = made.cause;
}

// ---- what a call on the host made

inline Slot value_of(const mr_output& output) {
  return {output.value, output.data, reinterpret_cast<memory::Block*>(output.token), {}, false, Cause::silent};
}

// True if the output repeats the input whose buffer it shares by the plan.
inline bool shares_input(const mr_output& output, int32_t forwards) {
  return output.state == MR_OUTPUT_FORWARDED && static_cast<int32_t>(output.source) == forwards;
}

// A value that is passed on though the plan could not let the output share its buffer: it has another lifetime.
Slot copy_of(const StepRun& step, size_t o, uint64_t ordinal, const mr_input& from);

// Of an output that shares no input.
inline Slot slot_of(const StepRun& step, size_t o, uint64_t ordinal, const mr_output& output, const mr_input* inputs,
                    Cause cause) {
  if (output.state == MR_OUTPUT_SILENT) return nothing(cause);
  return output.state == MR_OUTPUT_FORWARDED ? copy_of(step, o, ordinal, inputs[output.source]) : value_of(output);
}

// Of one that does: a bypassed output has a ring of its own, whose slots are released.
inline void hold_shared(const OutputRun& output, const Slot& slot) {
  if (output.holds) hold(slot);
}

// A firing's outputs become the slots of its tick; the slots of its inputs are still there.
void settle_outputs(HandlerRun& step, uint64_t ordinal, std::span<const mr_output> outputs,
                    std::span<const mr_input> inputs, Cause cause);
void settle_empty(StepRun& step, uint64_t ordinal, Cause cause);
void clear_outputs(StepRun& step, uint64_t ordinal, Cause cause); // the same, not told to other threads yet

} // namespace millrace::exec
