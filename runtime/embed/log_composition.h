// Logs the parts of a run: plugins, plan, devices.
#pragma once

#include "observe/log.h"

namespace millrace::plan {
struct Plan;
}

namespace millrace::embed {

// Call it once the devices of the plan are open.
void log_composition(Log& log, const plan::Plan& plan);

} // namespace millrace::embed
