// What a call says, before anybody acts on it (check_call.cpp; semantics.md 8.10). Sets the handler's sentence where it
// refuses.
#pragma once

#include <cstddef>
#include <span>

#include "exec/handler_run.h"

namespace millrace::exec {

// The status of a firing: an error where it is no status, or an output is not what was planned.
mr_status status_of_call(HandlerRun& step, mr_status status, std::span<mr_output> outputs,
                         std::span<const mr_input> inputs);
// Of an output whose value says that it is not there: what it took goes back, and it is silent.
bool is_withdrawn(const HandlerRun& step, size_t o, mr_output& output);
// `repeated`: the value of the input that it forwards; null where there is none.
bool output_is_sound(const HandlerRun& step, size_t o, const mr_output& output, const mr_value* repeated);

} // namespace millrace::exec
