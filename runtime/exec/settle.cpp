// Settles the outputs of a firing; see settle.h.
#include "exec/settle.h"

#include <algorithm>
#include <cstring>

#include "exec/firing.h"
#include "exec/tap_point.h"
#include "plan/memory.h"

namespace millrace::exec {

void show_to_taps(OutputRun& output, uint64_t ordinal, const Slot& slot) {
  output.tapped.load(std::memory_order_acquire)->show(ordinal, slot);
}

Slot copy_of(const StepRun& step, size_t o, uint64_t ordinal, const mr_input& from) {
  memory::Block& block = step.outputs[o]->ring->take(ordinal);
  std::memcpy(block.value, from.value, sizeof(mr_value));
  const uint64_t extent = std::min(from.value->header.extent_bytes, block.ring->capacity());
  if (extent > 0) std::memcpy(block.data, from.data, extent);
  return {block.value, block.data, &block, {}, false, Cause::silent};
}

void settle_outputs(HandlerRun& step, uint64_t ordinal, std::span<const mr_output> outputs,
                    std::span<const mr_input> inputs, Cause cause) {
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    OutputRun& output = *step.outputs[o];
    if (!shares_input(outputs[o], output.plan->forwards)) {
      settle(output, ordinal, slot_of(step, o, ordinal, outputs[o], inputs.data(), cause));
      continue;
    }
    Slot& slot = settle(output, ordinal, step.inputs[outputs[o].source].output->at(ordinal));
    slot.presence_pending = false;
    hold_shared(output, slot);
  }
}

void clear_outputs(StepRun& step, uint64_t ordinal, Cause cause) {
  for (OutputRun* output : step.outputs) settle(*output, ordinal, nothing(cause));
}

void settle_empty(StepRun& step, uint64_t ordinal, Cause cause) {
  clear_outputs(step, ordinal, cause);
  stamp(step, ordinal);
}

} // namespace millrace::exec
