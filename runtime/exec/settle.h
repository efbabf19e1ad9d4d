// Settles the slots of outputs. Every output of every step, on the host and on devices, becomes one of these
// (semantics.md 2.1): a value; a value that a device may still leave out; nothing, with the reason.
//
// Slots of a handler's outputs are written by settle() and, on ticks that nobody looks at, by the fast way alone. So
// settle() is where a tap sees a value: the step has returned, and neither a reader nor a writer in place has begun.
#pragma once

#include <cstdint>
#include <span>

#include "exec/handler_run.h"
#include "exec/presence.h"

namespace millrace::exec {

// Copies the slot for taps that wait for a sample (tap_point.h). On the thread that settles it, before its stamp.
void show_to_taps(OutputRun& output, uint64_t ordinal, const Slot& slot);

inline Slot nothing(Cause cause) {
  Slot slot;
  slot.cause = cause;
  return slot;
}

// The bytes are there once the fence is done.
inline Slot value_in(memory::Block& block, const device::Fence& fence = {}) {
  return {block.record, block.data, &block, fence, false, Cause::silent};
}

// The block says, once the fence is done, whether there is a value.
inline Slot awaited(memory::Block& block, const device::Fence& fence = {}) {
  return {block.record, block.data, &block, fence, true, Cause::silent};
}

inline Slot& settle(OutputRun& output, uint64_t ordinal, const Slot& slot) {
  Slot& settled = output.at(ordinal) = slot;
  if (output.tapped.load(std::memory_order_relaxed)) [[unlikely]]
    show_to_taps(output, ordinal, settled);
  return settled;
}

// Settles a slot of a plain step on a tick that is not careful, so no tap looks. Such slots never carry a fence or an
// unknown presence, so those fields stay as they are.
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

// Copies an input that is passed on, if the plan could not let the output share its buffer because their lifetimes
// differ.
Slot copy_of(const StepRun& step, size_t o, uint64_t ordinal, const mr_input& from);

// The slot of an output that shares no input's buffer.
inline Slot slot_of(const StepRun& step, size_t o, uint64_t ordinal, const mr_output& output, const mr_input* inputs,
                    Cause cause) {
  if (output.state == MR_OUTPUT_SILENT) return nothing(cause);
  return output.state == MR_OUTPUT_FORWARDED ? copy_of(step, o, ordinal, inputs[output.source]) : value_of(output);
}

// Holds the block of an output that shares an input's buffer, if the output's slots are released later: a bypassed
// output has a ring of its own.
inline void hold_shared(const OutputRun& output, const Slot& slot) {
  if (output.holds) hold(slot);
}

// Turns a firing's outputs into the slots of its tick. The slots of its inputs must still be there.
void settle_outputs(HandlerRun& step, uint64_t ordinal, std::span<const mr_output> outputs,
                    std::span<const mr_input> inputs, Cause cause);
void settle_empty(StepRun& step, uint64_t ordinal, Cause cause);
void clear_outputs(StepRun& step, uint64_t ordinal, Cause cause); // the same without the stamp

} // namespace millrace::exec
