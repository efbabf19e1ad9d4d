// The due times of a source's values, and the choice of the value that a beat shows (semantics.md 1.4).
//
// Problem. A beat is a whole number of periods, rounded down to whole nanoseconds. A value's time was rounded by its
// container, to a nanosecond at best and to a millisecond in Matroska. Compared as they are, every third picture of a
// film of 30 a second is due just after its own beat: then two pictures are due at the next beat, and one is lost.
//
// Why this way. The source's values lie on a grid of its own: its first time plus whole periods of its rate. A time
// that is as near to that grid as its rounding allows is on it. So the exact time is known again, and film and clock of
// one rate agree at each beat, for ever. A time that is further away (a variable rate, a pause) counts as it was told,
// and the grid begins anew there. A value that comes too soon after the one before it would take its beat away.
// Where the source is not faster than its clock there is a beat for each value: so the later one waits for the next.
#pragma once

#include <cstdint>

#include "graph/enums.h"

namespace millrace::exec {

class DueTimes {
 public:
  // `rate`: the source's own; numerator 0: none, and each value is due at its time. `rounding_ns`: plan::rounding_ns.
  DueTimes() = default;
  DueTimes(const graph::Rational& rate, int64_t rounding_ns) : rate_(rate), rounding_ns_(rounding_ns) {}

  struct Due {
    int64_t at_ns = 0;
    bool replaced = false; // its time did not rise: it is due one period after the value before (8.9)
  };
  // The next value's due time. They rise strictly until they saturate.
  Due next(int64_t time_ns);
  // The source begins anew: its next value begins a grid.
  void begin_anew() { *this = DueTimes(rate_, rounding_ns_); }

  const graph::Rational& rate() const { return rate_; }

 private:
  int64_t nearest_beat(int64_t time_ns) const;

  graph::Rational rate_;
  int64_t rounding_ns_ = 1;
  int64_t grid_ns_ = INT64_MIN; // beat 0 of the source's own grid
  int64_t last_time_ns_ = INT64_MIN, last_due_ns_ = INT64_MIN;
};

// True if a clock of this rate has a beat for each value of the source, up to one in a thousand.
bool has_beat_for_each(const graph::Rational& clock, const graph::Rational& source);

} // namespace millrace::exec
