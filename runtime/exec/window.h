// The window of a pace: which of its ticks are over, whether there is room for one more, and which blocks are released
// then. Steps of other paces ask here how far this one is. Any thread may call all but window_full() and retire().
#pragma once

#include <cstdint>

#include "exec/channel.h"
#include "exec/presence.h"

namespace millrace::exec {

// Ordinals below it are done in every segment, on devices too; monotone.
uint64_t completed(PaceRun& pace);
// True if the segment's device has not done everything that the segment submitted to it.
bool waits_for_device(SegmentRun& segment);
// When the tick that made room in the window was done.
int64_t room_since_ns(const PaceRun& pace, uint64_t ordinal);
// Index of the last tick such that all its entries and those before are settled by `step`; -1: none; INT64_MAX: all.
int64_t settled_through(PaceRun& pace, const ChannelEnd& step);
// How far a gate, post or resolve step has come in media time (semantics.md 8.1).
struct Passed {
  int64_t through_ns; // every tick at or before it is dealt with, and the next one is known to be later
  bool ended;         // the clock has ended, and every tick of it is dealt with
  bool has(int64_t media_ns) const { return ended || through_ns >= media_ns; }
};
Passed passed_by(const ChannelEnd& step);
// True if the gate has dealt with every tick that came, and none comes before a node that is away is back (7.9).
bool is_stranded(const ChannelEnd& gate);

// The ticks of a clock that have come to this node so far: those that it admitted at its home, or else those of its far
// pace that is furthest.
uint64_t ticks_here(const PlanRun& planned, uint32_t clock);

// Called by the head on every tick. Inline, because most of the time there is nothing to do.
inline bool window_full(PaceRun& pace, uint64_t ordinal) {
  if (ordinal < pace.window || pace.completed_seen > ordinal - pace.window) return false;
  pace.completed_seen = completed(pace);
  return pace.completed_seen <= ordinal - pace.window;
}
// Releases the blocks of slots whose ordinals have left the window. Does so once an ordinal, however often the ordinal
// is tried.
inline void retire(PaceRun& pace, uint64_t ordinal) {
  if (pace.retired > ordinal) return;
  pace.retired = ordinal + 1;
  for (OutputRun* output : pace.held_outputs) {
    const uint64_t age = pace.window + output->retain;
    if (ordinal >= age) release(output->at(ordinal - age));
  }
}

} // namespace millrace::exec
