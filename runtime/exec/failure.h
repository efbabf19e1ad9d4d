// What becomes of what a handler says when it fails (failure.cpp; semantics.md 2.6).
#pragma once

#include <cstdint>
#include <string>

namespace millrace::exec {

struct StepRun;

// A call of the handler has failed: counted, and told, or the end of the run, as its on_error says.
void note_error(StepRun& step, uint64_t index);
// A failure that the handler's policy passes over (2.6) is no error of the run: the first sentence of a handler is told
// when it comes, and every one is counted in the report.
void say_error(StepRun& step);
// True if this thread is inside a call of a handler. A handler's own thread never is.
bool is_in_a_call();
// A failure that belongs to no call: the handler's policy has no tick to settle. Any thread.
void fail_outside_calls(StepRun& step, const std::string& sentence);

} // namespace millrace::exec
