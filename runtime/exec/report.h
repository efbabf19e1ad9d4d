// What a run did, in numbers (report.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "exec/run.h"

namespace millrace::exec {

class RunState;

Report make_report(const RunState& run);
// Adds what was dropped so far, by cause, on all edges: once where several edges share a channel.
void count_drops(const RunState& run, std::map<std::string, uint64_t>& dropped);

} // namespace millrace::exec
