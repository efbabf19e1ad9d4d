// A step of the plan as it runs: what all kinds have. The kinds are in handler_run.h, body.h, finish_step.h,
// copy_step.h and channel.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "exec/lines.h"
#include "exec/state.h"
#include "observe/error.h"
#include "plan/none.h"

namespace millrace::plan {
struct Step;
}

namespace millrace::exec {

struct HandlerRun;
struct RegionRun;

// Counts the values that one edge gave to one lane of a handler.
struct InputTotals {
  SingleWriter<uint64_t> delivered, empty[static_cast<size_t>(Cause::count)];
  SingleWriter<uint64_t> absent_at_fence;    // part of `delivered`: not there when the body ran
  SingleWriter<uint64_t> absent_from_launch; // lists that were not there on a tick of one launch
  // For a queue: values on ticks on which the handler was not called, because of `every` or because another input that
  // it requires was empty (8.6).
  SingleWriter<uint64_t> lost_by_every, lost_by_input;
  // For a step that gives items to a group: part of `delivered`, of items that were dropped. Under the group's mutex.
  SingleWriter<uint64_t> dropped_late;
};

struct InputRun {
  OutputRun* output = nullptr;
  const StepStamps* producer = nullptr; // null if it is earlier in the same segment
  uint32_t delay = 0;
  uint32_t keeps = 0;
  bool required = true;
  bool idle_without = false;
  bool initial_empty = false;
  bool repeat_last = false;
  bool calls = false;       // a value here makes the handler fire
  bool may_be_late = false; // slots may carry fences or unknown presence
  uint32_t edge = plan::kNone;
  OutputRun* queue = nullptr;              // for a queue: the output that has its value before any copy
  Slot last;                               // repeat_last: held
  std::vector<Slot> kept;                  // keeps: a ring of held slots
  const memory::Block* recorded = nullptr; // kept copies: the block that the region's recordings read
  uint64_t kept_next = 0;
  InputTotals* totals = nullptr; // for a handler's input: in its HandlerLife
};

// `made_room`: the step waits, but took values from a channel, so a step that waited for room in it may go on.
enum class StepResult { settled, waiting, made_room, calling };

// The stream that a step is submitted to, and the fences of what was submitted. built; the claimer writes the fences.
struct OnDevice {
  device::Device* device = nullptr;       // null: a thread of the host runs the step
  device::Enqueuing* enqueuing = nullptr; // its results are known when it is submitted; null: at its fence
  device::Stream* stream = nullptr;
  RegionRun* region = nullptr;       // it is captured with others
  std::vector<device::Fence> fences; // [ordinal & mask]
  device::Fence last_fence;          // the last submission's
};

// One lane of one step. Each kind is a struct of its own.
struct alignas(64) StepRun {
  StepRun() = default;
  virtual ~StepRun() = default;
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  // One tick of it, by the claimer of its segment.
  virtual StepResult advance(uint64_t ordinal) = 0;
  // The handler that it calls; null: it calls none, or the finish() of another step's handler.
  virtual HandlerRun* called() { return nullptr; }

  // built; `segment` cut
  RunState* run = nullptr;
  const plan::Step* plan = nullptr;
  uint32_t index = 0; // into Plan::steps
  uint32_t every = 1;
  PaceRun* pace = nullptr;
  SegmentRun* segment = nullptr;
  StepStamps* shared = nullptr;
  LineVector<InputRun> inputs;
  std::vector<OutputRun*> outputs;
  std::vector<const StepStamps*> after;        // cut; null: earlier in the same segment
  std::vector<const StepRun*> after_on_device; // copies and bodies that read what this step writes over
  OnDevice on;

  bool flat = false;          // claimer: a HandlerRun that may go the fast way (run_flat)
  bool plain = false;         // cut: no delays, fences, waits for readers, or holders
  bool fed_by_others = false; // cut: an input comes from another segment
  bool reads_queue = false;   // built
  bool takes_firings = false; // built: in a group's pace, one advance() is for all items of a firing

  // built, or start. The ring of its reader's thread or its device's stream; null: a worker calls it.
  TraceRing* trace = nullptr;
  Histogram times; // written by the segment's claimer, or by the thread that calls it outside the segment
};

// The step as the kind that the plan says it is.
template <class Kind>
Kind& as(StepRun& step) {
  auto* own = dynamic_cast<Kind*>(&step);
  MR_ASSERT(own, "the plan says what kind a step is");
  return *own;
}

} // namespace millrace::exec
