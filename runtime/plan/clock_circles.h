// Clocks that wait for each other in a circle (semantics.md 8.2, 8.3). Private to runtime/plan.
//
// Problem. Between clocks that wait, a reader waits until the writer's clock has passed a media time, and a writer
// waits for room. If such edges form a circle, each clock may hold the other for ever. There are two causes: a blocking
// queue makes its writer late in media time, or a window has no room for the ticks that another clock must see first.
//
// Why this way. The graph has a node for each clock and an edge for each edge between clocks that waits. It has no
// directions, because a writer that waits for room waits against the edge. An edge is a bridge if it is the only way
// between its two sides; no circle of waits goes through a bridge. The clocks that are joined by other edges form a
// *circle*. A wait in a circle goes from one tick to another whose media time is later by at most `within` and by what
// may be owed before the edge's writer and before its reader, each edge once, until it comes to a clock whose window is
// full. Where every window is longer than the sum of those, the tick at its tail is earlier than the one that the wait
// began with: no wait comes back to itself.
//
// Invariants.
//  - The sum is over all edges of a circle, not over the longest way round: circles that share a clock can be walked
//    one after the other.
//  - A window gives its length only where the steps at its head are not held by one that waits: in a circle a segment
//    has only steps that wait for the same edges, and a step that waits for room stands alone (partition.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/draft.h"

namespace millrace::plan {

// Refuses what may stand still for ever whatever the windows are: a queue that blocks on a circle (MR0414), a circle of
// handlers that takes a later value of another clock and needs an earlier one of its own for it (MR0414).
void refuse_standing_circles(const Draft& draft);

// How long the ticks of each clock may be held by others of its circle, and how many that are (8.3): Clock::held_ns,
// held_ticks. Refuses (MR0415) an `in_flight` that is fixed below, and a clock of no rate.
void hold_circles(Draft& draft);

class ClockCircles {
 public:
  explicit ClockCircles(const Plan& plan);

  // Whether the channel joins two clocks of one circle.
  bool joins(const Channel& channel) const;
  bool has(uint32_t clock) const { return circle_[clock] != kNone; }
  // The clocks that are on one circle with this one, itself among them.
  std::vector<uint32_t> round(uint32_t clock) const;
  // Media time that a tick of this circle may be held for; 0: its own time is all that is waited for. Needs levels.
  int64_t span_ns(uint32_t clock) const;
  // Ticks that may be owed before an end of an edge that is in this clock, at most.
  uint32_t owed_most(uint32_t clock) const;
  // Ticks that are owed before every edge that leaves the clock, at least, and for which its own window has room beside
  // those in flight: a pace of its own has that room in a window of its own.
  uint32_t owed_least(uint32_t clock) const;
  // By step: which waits for other clocks of a circle have to end before it can run. Equal numbers, equal waits; 0:
  // none.
  std::vector<uint32_t> waits() const;

 private:
  const Plan& plan_;
  std::vector<uint32_t> circle_; // by clock
};

// Ticks of this rate that so much media time holds at most, begun ones too.
uint32_t ticks_in(int64_t span_ns, const graph::Rational& rate);

} // namespace millrace::plan
