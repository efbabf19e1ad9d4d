// Checks what a call returned before any step acts on it (check_call.cpp; semantics.md 8.10). A refusal sets the
// handler's error sentence.
#pragma once

#include <cstddef>
#include <span>

#include "exec/handler_run.h"

namespace millrace::exec {

// The status of a firing. It is an error if the call returned no valid status or an output is not what was planned.
mr_status status_of_call(HandlerRun& step, mr_status status, std::span<mr_output> outputs,
                         std::span<const mr_input> inputs);
// True if the output's value is marked as not present. The output is then silent, and its block goes back (on a device
// it stays).
bool is_withdrawn(const HandlerRun& step, size_t o, mr_output& output);
// `repeated`: the value of the input that the output forwards; null if there is none.
bool output_is_sound(const HandlerRun& step, size_t o, const mr_output& output, const mr_value* repeated);
// Values of the handler's own say its stream, if it has one, whatever they were made from. What it only passes on keeps
// the stream of its maker.
inline void mark_stream(const HandlerRun& step, uint32_t stream, std::span<const mr_output> outputs) {
  if (!step.has_stream) return;
  for (const mr_output& output : outputs)
    if (output.state == MR_OUTPUT_OWN || output.state == MR_OUTPUT_ADOPTED) output.value->header.stream = stream;
}

} // namespace millrace::exec
