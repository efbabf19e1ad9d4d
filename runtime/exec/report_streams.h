// The part of a run's report that is about its streams.
#pragma once

#include <vector>

#include "observe/report.h"

namespace millrace {
struct Error;
}

namespace millrace::exec {

class Counters;
class RunState;

// One entry for each clock of a set that has handlers on this node: each stream's, or the one that its streams share.
std::vector<StreamReport> report_streams(const RunState& run, const Counters& counters);
// The error of a set whose streams have all failed; null if there is none. Under failure_mutex.
const Error* error_of_all_streams(const RunState& run);

} // namespace millrace::exec
