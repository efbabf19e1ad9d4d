// Regions: device handlers that are recorded once per ring slot and replayed as one (semantics.md 4.5). recording.cpp
// records them, launch.cpp launches them, measure_bodies.cpp says how long their bodies take.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/body.h"

namespace millrace::exec {

struct CopyRun;

// The device's events around a region are two more calls and take the device some microseconds: they are in one tick of
// 256, and of a long run in one of 4096, once it has begun.
inline constexpr uint64_t kManySpans = 4096, kSpanMask = 255, kLateSpanMask = 4095;
inline bool has_span(uint64_t index) { return (index & (index < kManySpans ? kSpanMask : kLateSpanMask)) == 0; }

// Where bodies enqueue, the host looks only at the values that enter a region and at those that are read outside it.
struct RegionInput {
  InputRun* input;
  mr_value recorded;  // the value's header as the bodies saw it when they were recorded
  mr_header header{}; // of the tick that is being launched
};
struct RegionOutput {
  OutputRun* output;
  int32_t times_of = -1;          // the entry whose times its values have; -1: the tick's
  std::vector<mr_value> recorded; // by slot: the header that the bodies wrote
};

// The bodies of a region are kept per slot, with the addresses that the recording froze.
struct RegionRun {
  const plan::Region* plan = nullptr;
  std::vector<BodyRun*> steps;                                // in order
  std::vector<std::unique_ptr<device::Recording>> recordings; // by ordinal mod slots

  std::vector<RegionInput> entries;
  std::vector<RegionOutput> exits;
  std::vector<CopyRun*> fused_downloads;    // small copies down that are in the recording
  std::vector<uint64_t> launched;           // by slot: 1 + the last ordinal that was one launch
  std::vector<BodyRun*> stamped;            // whose ordinals somebody outside waits for
  size_t changes_seen = 0;                  // live changes that all its steps have looked at
  bool stale = false;                       // a handler was changed or restarted since it was recorded
  SingleWriter<uint64_t> replays, streamed; // ticks by launch of the graph, and body by body
  Histogram times;                          // device time of a launch
};

// Records every slot of a region; after all handlers have started. One that cannot be recorded is left to its streams:
// its bodies are submitted one by one.
void record_region(RegionRun& region);
StepResult run_region(RegionRun& region, uint64_t ordinal);
void warm_up(RegionRun& region, uint64_t ordinal); // before its tick comes
// Before bodies are measured; waits for the device.
void measure_empty_span(RegionRun& region);

} // namespace millrace::exec
