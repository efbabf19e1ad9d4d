// A run's trace as a file that Perfetto and chrome://tracing open: a process per node, a track per worker, reader,
// device stream and group, a slice per call and firing, and arrows that follow a tick from one track to another.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "observe/trace.h"

namespace millrace {

struct TraceEvent {
  int64_t begin_ns = 0, duration_ns = 0; // since the trace began
  uint64_t trace_id = 0;                 // as TraceSpan has it
  uint32_t step = 0;                     // index into TraceOfRun::steps
  TraceKind kind{};
  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

struct TraceTrack {
  std::string name;
  std::vector<TraceEvent> events; // in the order in which they ended
};

struct TraceOfRun {
  std::string name;
  int64_t begin_ns = 0; // the trace's time 0 on the run's clock
  int64_t error_ns = 0; // by so much its times may be off those of the coordinator's trace; 0: they are exact
  std::vector<TraceTrack> tracks;
  std::vector<std::string> steps;
  std::vector<std::string> clocks; // by a trace id's bits above kTraceIndexBits
  uint64_t forgotten = 0;          // spans that newer ones have overwritten
  uint64_t left_out = 0;           // events that are missing because a node sent its newest ones only
};

// To be called when the ring's thread no longer writes it.
void add_track(const TraceRing& ring, const TraceClock& clock, TraceOfRun& run);

// One process for each of `runs`, which have one clock. Times are microseconds since the trace of the first one began.
void write_trace(const std::vector<TraceOfRun>& runs, std::ostream& out);

} // namespace millrace
