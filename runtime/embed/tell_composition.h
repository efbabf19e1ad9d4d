// Tells the log what a run is made of: plugins, plan, devices.
#pragma once

#include <vector>

#include "device/device.h"
#include "observe/log.h"
#include "plan/plan.h"

namespace millrace::embed {

// `devices` by the plan's domain index.
void tell_composition(Log& log, const plan::Plan& plan, const std::vector<device::Device*>& devices);

} // namespace millrace::embed
