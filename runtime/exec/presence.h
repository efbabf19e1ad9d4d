// Presence of values: if a slot has one for its readers, and which steps hold its block.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "device/device.h"
#include "exec/run_state.h"
#include "memory/ring.h"

namespace millrace::exec {

void hold(const Slot& slot);
void release(Slot& slot);

// The earlier tick that an input with `delay` reads.
enum class Back { there, before_first, never }; // never: it was not let into this pace, so its slots are empty
struct Earlier {
  Back back;
  uint64_t ordinal; // valid for Back::there
};
Earlier look_back(const StepRun& step, const InputRun& input, uint64_t ordinal);

// For a block that a device whose bodies enqueue copies down: true if only the device knows how many records are in it.
inline bool is_counted_late(const memory::Block& block) {
  return block.record != block.value && block.record->header.kind == MR_KIND_RECORDS;
}
// Called when such a block is on its way: notes if a reader has to learn its count once the fence is done.
inline void count_late(memory::Block& block) {
  using memory::Block;
  block.counted.store(is_counted_late(block) ? Block::kUncounted : Block::kCounted, std::memory_order_relaxed);
}

// True if the device that was to make the value has failed.
inline bool lost(const device::Fence& fence) {
  return fence.word && fence.word->load(std::memory_order_acquire) == device::kFailed;
}
inline bool lost(const Slot& slot) { return lost(slot.fence); }
// True if a device has failed that other devices may wait for: their waits were released, and they may have worked on
// bytes that were never written. Ask once the fence of their work is done; a failure that concerns it is known by then.
// The failed device's words do not tell, because its hardware may still write them.
inline bool any_lost(const RunState& run) {
  return std::any_of(run.followed.begin(), run.followed.end(),
                     [](const device::Device* device) { return device->failed(); });
}
// Settles the slot of a value that kernels write to host memory: it is there once the fence is done, if the device has
// not failed before.
inline void await_host_block(Slot& slot) {
  slot.presence_pending = true;
  slot.block->present.store(1, std::memory_order_relaxed);
  count_late(*slot.block);
}
// True if the value of a slot whose presence a device decides has arrived, and no device failed before it did. Ask once
// the slot's fence is done.
inline bool arrived(const RunState& run, const Slot& slot) {
  const uint64_t at = slot.fence.word ? slot.fence.word->load(std::memory_order_acquire) : slot.fence.sequence;
  if (at == device::kFailed || at < slot.fence.sequence || any_lost(run) ||
      !slot.block->present.load(std::memory_order_relaxed))
    return false;
  memory::learn_count(*slot.block);
  return true;
}
inline bool present(const RunState& run, const Slot& slot) {
  return slot.value && (!slot.presence_pending || arrived(run, slot));
}

// The slot that an input reads for this ordinal, presence resolved: a value (perhaps in `room`), or null.
const Slot* read(StepRun& step, InputRun& input, uint64_t ordinal, Slot& room);
// Why an input that reads no value on this tick has none.
Cause why_empty(const StepRun& step, const InputRun& input, uint64_t ordinal);
// The slot becomes the input's last value, or one of those that it keeps.
void remember(InputRun& input, const Slot& slot);
void keep(InputRun& input, const Slot& slot);

} // namespace millrace::exec
