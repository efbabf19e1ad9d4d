// Reports in numbers what a run did (report.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "exec/run.h"

namespace millrace::exec {

class RunState;

Report make_report(const RunState& run);
// Adds what was dropped so far on all edges, by cause. A channel that several edges share counts once.
void count_drops(const RunState& run, std::map<std::string, uint64_t>& dropped);

} // namespace millrace::exec
