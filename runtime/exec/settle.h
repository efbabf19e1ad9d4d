// How the slot of an output comes to be. Every output of every step, on the host and on devices, becomes one of these
// (semantics.md 2.1): a value; a value that a device may still leave out; nothing, with the reason.
#pragma once

#include <cstdint>

#include "exec/state.h"

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

// What a call that ran on the host made.
inline Slot value_of(const mr_output& output) {
  return {output.value, output.data, reinterpret_cast<memory::Block*>(output.token), {}, false, Cause::silent};
}

inline Slot& settle(OutputRun& output, uint64_t ordinal, const Slot& slot) { return output.at(ordinal) = slot; }

} // namespace millrace::exec
