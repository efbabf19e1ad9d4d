// How runs of applications end, for Runtime and FileRun alike, and the limit of what both take.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/runtime.h"

namespace millrace {
struct Result;
}

namespace millrace::embed {

// More threads than this is a typing error.
inline constexpr uint32_t kThreadsMax = 1024;
// The end of a run waits no longer than this for on_message and on_log to take what is queued; they get the rest later.
inline constexpr int64_t kLogWrittenWithinNs = 10'000'000'000;

// Throws Failure (MR0105) if an application asks for more than kThreadsMax.
void check_threads(uint32_t threads);

// `report`: JSON, of this run or of the runs of all nodes.
Outcome outcome_of(const Result& result, std::string report);

} // namespace millrace::embed
