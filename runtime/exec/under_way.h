// Which calls of a run are under way (under_way.cpp).
#pragma once

#include <vector>

#include "exec/run.h"
#include "plugin/under_way.h"

namespace millrace::exec {

class RunState;
struct HandlerRun;

// For plugin::UnderWay, the call that a worker is in by its segment, or a reader or device by its step.
plugin::CallName name_call_in(const void* segment_run);
plugin::CallName name_call_apart(const void* step_run);

// Which function of its handler is called: "process" or "finish".
const char* function_of(const HandlerRun& step);

std::vector<CallUnderWay> calls_under_way(const RunState& run);

} // namespace millrace::exec
