// Tells the log what a run is made of: plugins, plan, devices.
#pragma once

#include "observe/log.h"
#include "plan/plan.h"

namespace millrace::embed {

// Once the devices of the plan are open.
void tell_composition(Log& log, const plan::Plan& plan);

} // namespace millrace::embed
