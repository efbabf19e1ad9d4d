// Reports in numbers what a run did (report.cpp).
#pragma once

#include "exec/run.h"

namespace millrace::exec {

class RunState;

Report make_report(const RunState& run);

} // namespace millrace::exec
