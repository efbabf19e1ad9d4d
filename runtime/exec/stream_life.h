// A stream that fails and begins anew, where its set says `on_error: restart` (batch-design B11).
//
//   runs       its clock admits ticks
//   leaving    it admits none; threads that read its sources leave their handlers
//   draining   each of its segments ends the ticks that it has, and resets its handlers (end_epoch)
//   down       it waits until the back-off is over
//   starting   its sources are stopped, reset and started, by their own threads if they block
//   vacant     its stream is over, and another one may come into its seat (seats.h)
//
// Each time round is an epoch of the clock. Indices and media times go on from one to the next, and no tick sees a
// value of an earlier one. Other clocks are not concerned: to them a stream that is down is one that has nothing new.
#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace::exec {

struct HandlerRun;
struct PaceRun;
struct SegmentRun;
struct StepRun;

// The time to wait before a stream that has failed begins anew, if it failed so often in a row before.
inline constexpr int64_t kBackOffFirstNs = 100'000'000, kBackOffMaxNs = 30'000'000'000;
inline int64_t back_off_ns(uint32_t failed_before) {
  return std::min(kBackOffMaxNs, kBackOffFirstNs << std::min(failed_before, 20u));
}

// Called by the head of a clock that is halted, instead of admitting a tick. True once its stream has begun anew.
bool has_begun_anew(PaceRun& pace);
// The clock's sources have come to their end. True if the stream begins anew all the same: a live source that ends has
// lost what it reads.
bool loses_source(PaceRun& pace, uint64_t ordinal);
// The clock's sources have come to their end. True if the stream leaves its seat for another one.
bool leaves_seat(PaceRun& pace);
// Marks the first value of each source in an epoch (MR_FLAG_DISCONTINUITY). Called before the tick is published.
void mark_first_values(PaceRun& pace);

// True if the segment has to end an epoch that its pace has ended. Called between two ticks.
bool must_end_epoch(const SegmentRun& segment);
// Settles what the segment's handlers owe, for which it drains them, and resets them. If the stream leaves, all of its
// handlers are drained. No tick of the epoch follows.
void end_epoch(SegmentRun& segment);
// The handler to drain at this step; null if there is none. A GPU body that has a finish() is drained at its finish
// step, because finish() is called last.
HandlerRun* drained_here(StepRun& step);
// Stops, resets and starts a source. False if it does not start; its instance has the sentence.
bool start_anew(HandlerRun& source);

} // namespace millrace::exec
