// The part of a run's report that is about its streams.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/losses.h"
#include "observe/error.h"
#include "observe/histogram.h"
#include "observe/report.h"

namespace millrace::exec {

class RunState;
struct PaceRun;

using LostByClock = std::map<uint32_t, CountsByCause>; // values that the readers of each clock did not get

// The latencies of the pace's measured ticks so far.
Histogram latencies_of(const PaceRun& pace);

// One entry for each clock of a set that has handlers on this node: each stream's, or the one that its streams share.
std::vector<StreamReport> report_streams(const RunState& run, const LostByClock& lost);
// The error of a set whose streams have all failed; null if there is none. Under failure_mutex.
const Error* error_of_all_streams(const RunState& run);

} // namespace millrace::exec
