// Regions: device handlers that go to their device as one (region.cpp). captured.cpp records and launches those of
// devices whose bodies enqueue.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/step.h"

namespace millrace::exec {

struct BodyCall;

// The device's events around a region are two more calls and take the device some microseconds: they are in one tick of
// 256, and of a long run in one of 4096, once it has begun.
inline constexpr uint64_t kManySpans = 4096, kSpanMask = 255, kLateSpanMask = 4095;
inline bool has_span(uint64_t index) { return (index & (index < kManySpans ? kSpanMask : kLateSpanMask)) == 0; }

// Device handlers that are recorded once per ring slot and replayed as one (4.5). Their bodies are kept per slot, with
// the addresses that the recording froze; the tick, presence and what is absent are read from there when they run.
struct RegionRun {
  const plan::Region* plan = nullptr;
  std::vector<StepRun*> steps;                                // in order
  std::vector<std::unique_ptr<device::Recording>> recordings; // by ordinal mod slots

  // Where bodies enqueue, a tick of the whole region is one launch: the host looks only at what enters it and at what
  // somebody outside reads (captured.cpp).
  struct Entry {
    InputRun* input;
    mr_value recorded;  // what the bodies were told of it
    mr_header header{}; // of the tick that is being launched
  };
  struct Exit {
    OutputRun* output;
    int32_t times_of = -1;          // the entry whose times its values have; -1: the tick's
    std::vector<mr_value> recorded; // by slot: what the bodies said of it
  };
  std::vector<Entry> entries;
  std::vector<Exit> exits;
  std::vector<StepRun*> riders;             // small copies down that are in the recording
  std::vector<uint64_t> launched;           // by slot: 1 + the last ordinal that was one launch
  std::vector<StepRun*> stamped;            // whose ordinals somebody outside waits for
  size_t changes_seen = 0;                  // live changes that all its steps have looked at
  SingleWriter<uint64_t> replays, streamed; // ticks by launch of the graph, and body by body
  Histogram times;                          // device time of a launch
};

// region.cpp: a body of a region, with the addresses that its rings give a slot for ever.
void freeze(StepRun& step, BodyCall& body, uint32_t slot);
// Records every slot of a region; after all handlers have started.
void record_region(RegionRun& region);
StepResult run_region(RegionRun& region, uint64_t ordinal);

// captured.cpp: regions and bodies of devices whose bodies enqueue. A region that cannot be captured is left to
// streams.
void capture_region(RegionRun& region);
// Before bodies are measured; waits for the device.
void measure_empty_span(RegionRun& region);
StepResult run_captured(RegionRun& region, uint64_t ordinal);
void warm_up(RegionRun& region, uint64_t ordinal); // before its tick comes
StepResult run_enqueued(StepRun& step, uint64_t ordinal);

} // namespace millrace::exec
