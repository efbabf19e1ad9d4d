// Finds the calls of a run that are under way (under_way.cpp).
#pragma once

#include <vector>

#include "plugin/under_way.h"

namespace millrace::exec {

struct CallUnderWay;
class RunState;
struct HandlerRun;

// For plugin::UnderWay: name the call that a worker is in by its segment, and the call that a reader or device is in by
// its step.
plugin::CallName name_call_in(const void* segment_run);
plugin::CallName name_call_outside(const void* step_run);

// The function of its handler that is called: "process" or "finish".
const char* function_of(const HandlerRun& step);

std::vector<CallUnderWay> calls_under_way(const RunState& run);

} // namespace millrace::exec
