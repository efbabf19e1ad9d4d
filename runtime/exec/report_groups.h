// Reports in numbers what the groups of a run did (report_groups.cpp).
#pragma once

#include <vector>

#include "observe/report.h"

namespace millrace::exec {

class RunState;

std::vector<GroupReport> report_groups(const RunState& run);

} // namespace millrace::exec
