// A run's trace as a file that Perfetto and chrome://tracing open: a track per worker, reader and device stream, a
// slice per call, and arrows that follow a tick from one track to another.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "observe/trace.h"

namespace millrace {

struct TraceOfRun {
  std::string name;
  std::vector<const TraceRing*> rings; // a track each
  std::vector<std::string> steps;      // by TraceSpan::step
  std::vector<std::string> clocks;     // by a trace id's bits above kTraceIndexBits
  TraceClock clock;
};

// To be called when no thread of the run writes its rings any more. Times are microseconds since the start.
void write_trace(const TraceOfRun& run, std::ostream& out);

} // namespace millrace
