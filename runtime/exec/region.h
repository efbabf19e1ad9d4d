// Regions: device handlers that are recorded once per ring slot and replayed as one (semantics.md 4.5). recording.cpp
// records them, launch.cpp launches them, measure_bodies.cpp corrects the measured times of their bodies.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/body.h"

namespace millrace::plan {
struct Region;
}

namespace millrace::exec {

struct CopyRun;

// Timing a region takes two events around it, which are two more calls and cost the device some microseconds. So one
// tick in 256 is timed, and after the first 4096 ticks one in 4096.
inline constexpr uint64_t kManySpans = 4096, kSpanMask = 255, kLateSpanMask = 4095;
inline bool has_span(uint64_t index) { return (index & (index < kManySpans ? kSpanMask : kLateSpanMask)) == 0; }

// If bodies enqueue, the host looks only at the values that enter a region and at those that are read outside it.
struct RegionInput {
  InputRun* input;
  mr_value recorded;    // the value's header as the bodies saw it when they were recorded
  bool may_be_absent;   // on a tick without it the bodies see a list of no records (4.12)
  bool is_there = true; // on the tick that is being launched
  mr_header header{};   // its header on that tick, if it is there
};
struct RegionOutput {
  OutputRun* output;
  int32_t times_of = -1;          // the entry whose times its values have; -1: the tick's
  int32_t stream_of = -1;         // the entry whose stream its values have; -1: as recorded
  std::vector<mr_value> recorded; // by slot: the header that the bodies wrote
};

// The bodies of a region are kept per slot, with the addresses that the recording froze.
struct RegionRun {
  const plan::Region* plan = nullptr;
  std::vector<BodyRun*> steps;                                // in order
  std::vector<std::unique_ptr<device::Recording>> recordings; // by ordinal mod slots

  std::vector<RegionInput> entries;
  std::vector<RegionOutput> exits;
  std::vector<device::RecordedList> lists;  // the entries that may be absent, on the tick of a launch
  std::vector<CopyRun*> fused_downloads;    // small copies down that are in the recording
  std::vector<uint64_t> launched;           // by slot: 1 + the last ordinal that was one launch
  std::vector<BodyRun*> stamped;            // steps whose ordinals are waited for outside
  size_t changes_seen = 0;                  // live changes that all its steps have looked at
  bool stale = false;                       // a handler was changed or restarted since it was recorded
  SingleWriter<uint64_t> replays, streamed; // ticks by launch of the graph, and body by body
  Histogram times;                          // device time of a launch
};

// Records every slot of a region, once all handlers have started. If the region cannot be recorded, its bodies are
// submitted one by one to their streams.
void record_region(RegionRun& region);
StepResult run_region(RegionRun& region, uint64_t ordinal);
void warm_up(RegionRun& region, uint64_t ordinal); // before its tick comes
// Called before bodies are measured. Waits for the device.
void measure_empty_span(RegionRun& region);

} // namespace millrace::exec
