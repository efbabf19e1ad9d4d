// Clocks that wait for each other in a circle (semantics.md 8.2, 8.3). Private to runtime/plan.
//
// Problem. Between clocks that wait, a reader waits until the writer's clock has passed a media time, and a writer
// waits for room. If such edges form a circle, each clock may hold the other for ever. There are two causes: a blocking
// queue makes its writer late in media time, or a window has no room for the ticks that another clock must see first.
//
// Why this way. The graph has a node for each clock and an edge for each edge between clocks that waits. It has no
// directions, because a writer that waits for room waits against the edge. An edge is a bridge if it is the only way
// between its two sides; no circle of waits goes through a bridge. The clocks that are joined by other edges form a
// *circle*. A chain of waits in a circle leads from tick to tick. Over each edge, the media time rises by at most
// `within` plus what may be owed before the edge's writer and before its reader. The chain uses each edge once and ends
// at a clock whose window is full. If every window is longer than the sum of these rises, the tick at that window's
// tail is earlier than the tick at which the chain began: no wait comes back to itself.
//
// Invariants.
//  - The sum is over all edges of a circle, not over the longest way round: circles that share a clock can be walked
//    one after the other.
//  - A window is used in full only if no waiting step holds up the steps at its head. So in a circle a segment has only
//    steps that wait for the same edges, and a step that waits for room has a segment of its own (partition.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/draft.h"
#include "plan/pace.h"

namespace millrace::plan {

// Refuses graphs that may stand still for ever with any window: a queue that blocks on a circle (MR0414), and a circle
// of handlers that takes a later value of another clock and needs an earlier one of its own for it (MR0414).
void refuse_standing_circles(const Draft& draft);

// By clock: true if it may be on a circle, whatever channels edges share. To be asked before handlers have paces.
std::vector<bool> may_be_on_circle(const Draft& draft);

// Sets Clock::circle of all clocks. Needs the paces of all handlers.
void find_circles(Draft& draft);

// Sets Clock::held_ns, held_ticks, owed_ticks and crowd_ticks of the clocks on circles (8.3). Refuses (MR0415) a fixed
// `in_flight` that is too small for that, and a clock that needs a rate and has none.
void hold_circles(Draft& draft);

class ClockCircles {
 public:
  explicit ClockCircles(const Plan& plan) : plan_(plan) {}

  // True if one clock of the channel waits for the other and both are on one circle.
  bool joins(const Channel& channel) const;
  bool has(uint32_t clock) const { return plan_.clocks[clock].circle != kNone; }
  // The clocks that are on one circle with this one, itself among them.
  std::vector<uint32_t> round(uint32_t clock) const;
  // The media time for which a tick of this circle may be held because of channels of this node; 0 if ticks wait only
  // for values of their own time. Needs levels.
  int64_t span_ns(uint32_t clock) const;
  // The most ticks that may be owed before an end of a circle's edge, if that end is in this clock.
  uint32_t owed_most(uint32_t clock) const;
  // The fewest ticks owed before an edge that leaves the clock. The clock's window has room for them beside those in
  // flight. A writer in a decoupled pace counts as 0, because its pace has that room in its own window.
  uint32_t owed_least(uint32_t clock) const;
  // By step: a number for the set of waits for other clocks of a circle that must end before the step can run. Equal
  // numbers mean equal sets; 0 means no wait.
  std::vector<uint32_t> waits() const;

 private:
  const Plan& plan_;
};

// The most ticks of this rate that fit into the span; a tick that only begins in it counts.
uint32_t ticks_in(int64_t span_ns, const graph::Rational& rate);

} // namespace millrace::plan
