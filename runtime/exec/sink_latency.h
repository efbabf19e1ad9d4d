// Latencies of measured ticks, from their beginning to each sink and to their end (sink_latency.cpp).
#pragma once

#include <cstdint>

#include "observe/histogram.h"
#include "observe/single_writer.h"

namespace millrace::exec {

class RunState;
struct HandlerRun;
struct PaceRun;

// Times from the beginning of a measured tick until the sink's call was over.
struct SinkLatency {
  Histogram times;
  // The tick's clock is another node's: the most by which one of those times may be wrong.
  SingleWriter<int64_t> error_ns;
  SingleWriter<int64_t> first_ns; // the first tick, which pays for what is done only once; 0: not yet
};

// Before anything runs: finds the sinks, and gives them a place for their times.
void watch_sinks(RunState& run);
// Called when a call for this ordinal is over. If the step is a sink and the tick is measured, notes how long the tick
// took.
void record_sink_latency(HandlerRun& step, uint64_t ordinal);
// Makes `sum` the latencies of the pace's measured ticks so far, up to their end.
void copy_latencies(const PaceRun& pace, Histogram& sum);

} // namespace millrace::exec
