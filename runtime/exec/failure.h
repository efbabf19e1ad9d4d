// Failures of handlers: counting and reporting them, and the handler's on_error policy (failure.cpp; semantics.md 2.6).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "millrace/abi.h"

namespace millrace::exec {

struct BodyRun;
struct HandlerRun;

// Counts a failed call of the handler, and tells of it or ends the run, as the handler's on_error says.
void record_error(HandlerRun& step, uint64_t index);
// Tells of a failure that the handler's policy passes over (2.6), which is no error of the run. The terminal shows only
// the handler's first sentence; the log has each one, and the report counts them.
void log_error(HandlerRun& step);
// Applies the handler's policy to a failed call, on the host and on devices alike: it ends the run or passes over the
// failure, and `restart` also takes the handler down.
void apply_on_error(HandlerRun& step, uint64_t index);
// Makes the outputs of a failed call silent, or under `bypass` makes them repeat an input.
void fail_outputs(const HandlerRun& step, std::span<mr_output> outputs, std::span<const mr_input> inputs);

// Takes a handler down that is to restart. Earlier work of a body that enqueues may be under way, so
// restart_where_asked() takes its handler down later.
void take_down(HandlerRun& step);
// Called before a body is submitted: takes its handler down if take_down() asked for it. False while work of the body
// is under way.
bool restart_where_asked(BodyRun& step);
// True if the handler may be called. Starts a handler that is down, once its back-off is over; if it does not start, it
// goes down again and is tried again later.
bool is_up(HandlerRun& step);

// True if this thread is inside a call of a handler. A handler's own thread never is.
bool is_in_a_call();
// Reports a failure that belongs to no call, so that the handler's policy has no tick to settle. `fault`: one of
// MR_FAULT_*; another number is taken as MR_FAULT_NONE. Any thread.
void fail_outside_calls(HandlerRun& step, const std::string& sentence, uint32_t fault);

} // namespace millrace::exec
