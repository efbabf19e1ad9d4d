// How long measured ticks take to their sinks (sink_latency.cpp).
#pragma once

#include <cstdint>

#include "observe/histogram.h"
#include "observe/single_writer.h"

namespace millrace::exec {

class RunState;
struct HandlerRun;

// From the beginning of measured ticks until a sink's call was over.
struct SinkLatency {
  Histogram times;
  SingleWriter<int64_t> first_ns; // of the first tick, which pays for what is done once; 0: not yet
};

// Before anything runs: finds the sinks, and gives them a place for their times.
void watch_sinks(RunState& run);
// A call for this ordinal is over. Of a sink it is kept how long the tick took, where it is a sampled one.
void note_sink_latency(HandlerRun& step, uint64_t ordinal);

} // namespace millrace::exec
