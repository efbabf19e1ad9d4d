// Checks what a call returned before any step acts on it: its status, and each output against the plan (semantics.md
// 8.10).
#include "exec/check_call.h"

#include "exec/guard_bytes.h"
#include "exec/presence.h"
#include "exec/run_state.h"
#include "millrace/sound_value.h"
#include "plan/memory.h"

namespace millrace::exec {

namespace {

std::string words_of_output(const HandlerRun& step, size_t output) {
  return "its output '" + step.outputs[output]->plan->name + "' ";
}

mr_status refuse(const HandlerRun& step, const std::string& sentence) {
  step.instance->set_error(sentence);
  return MR_ERROR;
}

// True if the call kept to the block that it was given. Of a block that is the input's too, an earlier call may have
// written past the end.
bool kept_to_block(const HandlerRun& step, size_t o, const mr_output& output) {
  const OutputRun& run = *step.outputs[o];
  if (!run.guarded || step.on.device) return true;
  const auto* const block = reinterpret_cast<const memory::Block*>(output.token);
  if (!block || block->ring != run.ring || guard_is_whole(*block)) return true;
  return refuse(step, "it wrote past the end of its output '" + run.plan->name + "'") == MR_OK;
}

bool value_is_sound(const HandlerRun& step, size_t o, const mr_value* value, uint64_t capacity) {
  if (!value) return refuse(step, words_of_output(step, o) + "has no value") == MR_OK;
  const mr_format& planned = step.outputs[o]->plan->format;
  const ValueFault fault = find_fault(planned, *value, capacity);
  if (fault == ValueFault::none) [[likely]]
    return true;
  refuse(step, words_of_output(step, o) + words_of(fault, planned, *value, capacity));
  return false;
}

} // namespace

bool output_is_sound(const HandlerRun& step, size_t o, const mr_output& output, const mr_value* repeated) {
  if (output.state == MR_OUTPUT_SILENT) return true;
  if (output.state == MR_OUTPUT_OWN || output.state == MR_OUTPUT_ADOPTED)
    return kept_to_block(step, o, output) && value_is_sound(step, o, output.value, output.capacity);
  if (output.state != MR_OUTPUT_FORWARDED)
    return refuse(step, words_of_output(step, o) + "is in no known state") == MR_OK;
  if (!repeated) return refuse(step, words_of_output(step, o) + "forwards an input that is not there") == MR_OK;
  if (static_cast<int32_t>(output.source) == step.outputs[o]->plan->forwards) return true; // checked where it was made
  return value_is_sound(step, o, repeated, UINT64_MAX);
}

bool is_withdrawn(const HandlerRun& step, size_t o, mr_output& output) {
  const bool own = output.state == MR_OUTPUT_OWN || output.state == MR_OUTPUT_ADOPTED;
  if (!own || !output.value || output.value->header.present) [[likely]]
    return false;
  if (!step.on.device && step.outputs[o]->plan->owns) memory::release(reinterpret_cast<memory::Block*>(output.token));
  output.state = MR_OUTPUT_SILENT; // on a device the block stays, and is said to hold nothing
  return true;
}

mr_status status_of_call(HandlerRun& step, mr_status status, std::span<mr_output> outputs,
                         std::span<const mr_input> inputs) {
  if (status == MR_ERROR || status == MR_INTERRUPTED) return status;
  if (status < MR_OK || status > MR_END) return refuse(step, "process returned status " + std::to_string(status));
  if (step.deferred_in_call) {
    if (status == MR_END) step.run->stop();
    return MR_PENDING; // the firing is published later, whatever the body says after that
  }
  if (status == MR_PENDING) return refuse(step, "it says that its firing is pending, and has not deferred it");
  if (status == MR_NOT_YET && !step.inputs.empty()) return refuse(step, "it has inputs and says that it has nothing");
  for (size_t o = 0; o < outputs.size(); ++o) {
    mr_output& output = outputs[o];
    if (output.state == MR_OUTPUT_SILENT || is_withdrawn(step, o, output)) continue;
    const bool repeats = output.state == MR_OUTPUT_FORWARDED && output.source < inputs.size();
    if (!output_is_sound(step, o, output, repeats ? inputs[output.source].value : nullptr)) return MR_ERROR;
  }
  return status;
}

} // namespace millrace::exec
