// The head of a pace: which ticks there are, and which of them are over (admission.cpp).
#pragma once

#include <cstdint>

namespace millrace::exec {

struct PaceRun;
struct SegmentRun;
struct StepRun;

// The head of a pace. True where a new ordinal was admitted.
bool try_admit(PaceRun& pace);
// Ordinals below it are done in every segment, on devices too; monotone.
uint64_t completed(PaceRun& pace);
// Whether the device of this segment has not done all that was submitted to it. Any thread.
bool waits_for_device(SegmentRun& segment);
// Index of the last tick such that all its entries and those before are settled by `step`; -1: none; INT64_MAX: all.
int64_t settled_through(PaceRun& pace, const StepRun& step);

// How far a gate, post or resolve step has come in media time (semantics.md 8.1). Of any thread.
struct Passed {
  int64_t through_ns; // every tick at or before it is dealt with, and the next one is known to be later
  bool ended;         // the clock has ended, and every tick of it is dealt with
  bool has(int64_t media_ns) const { return ended || through_ns >= media_ns; }
};
Passed passed_by(const StepRun& step);

} // namespace millrace::exec
