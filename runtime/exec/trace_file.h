// A run's trace as a file that Perfetto and chrome://tracing open: a track per worker, reader and device stream, a
// slice per call, and arrows along a tick where it goes from one track to another. Private to runtime/exec.
#pragma once

#include <iosfwd>

namespace millrace::exec {

class RunState;

// When nothing of the run writes its rings any more. Times are microseconds since the start.
void write_trace(const RunState& run, std::ostream& out);

} // namespace millrace::exec
