// What becomes of what a handler says when it fails (failure.cpp; semantics.md 2.6).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "millrace/abi.h"

namespace millrace::exec {

struct BodyRun;
struct HandlerRun;

// A call of the handler has failed: counted, and told, or the end of the run, as its on_error says.
void note_error(HandlerRun& step, uint64_t index);
// A failure that the handler's policy passes over (2.6) is no error of the run: the first sentence of a handler is told
// when it comes, and every one is counted in the report.
void say_error(HandlerRun& step);
// What a failed call means, on the host and on devices alike: it is the end of the run, or the handler's policy passes
// over it, which may take the handler down.
void mind_failure(HandlerRun& step, uint64_t index);
// Its outputs: they are silent, or under `bypass` repeat an input.
void fail_outputs(const HandlerRun& step, std::span<mr_output> outputs, std::span<const mr_input> inputs);

// A handler that restarts is taken down: at once where nothing of it is under way, else by restart_where_asked().
void take_down(HandlerRun& step);
// Of a body that is about to be submitted: takes its handler down where that was asked for. False while something of it
// is under way.
bool restart_where_asked(BodyRun& step);
// Whether the handler may be called; one that is down is brought up, once its back-off is over. One that does not start
// goes down again, and is tried again later.
bool is_up(HandlerRun& step);

// True if this thread is inside a call of a handler. A handler's own thread never is.
bool is_in_a_call();
// A failure that belongs to no call: the handler's policy has no tick to settle. Any thread.
void fail_outside_calls(HandlerRun& step, const std::string& sentence);

} // namespace millrace::exec
