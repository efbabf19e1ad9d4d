// Arrival times of the items of many streams, by one of four patterns.
#pragma once

#include <cstdint>
#include <vector>

#include "observe/random.h"

namespace millrace::batch {

enum class Pattern {
  any_phase, // each stream at its period, from a random phase on
  in_phase,  // all streams at the same moments
  poisson,   // at random times
  bursts     // at random times, 200 ms with 1.6 times the rate and 200 ms with 0.4 times, for all streams at once
};
inline constexpr Pattern kPatterns[] = {Pattern::any_phase, Pattern::in_phase, Pattern::poisson, Pattern::bursts};
const char* name_of(Pattern pattern);

struct Arrival {
  int64_t at_ns;
  uint32_t stream;
};

class Arrivals {
 public:
  // `rate`: items per second of all streams together, alike for each.
  Arrivals(Pattern pattern, uint32_t streams, double rate, uint64_t seed);
  // Times never fall.
  Arrival next();
  int64_t period_ns() const { return period_ns_; }

 private:
  Pattern pattern_;
  uint32_t streams_;
  int64_t period_ns_; // the period of one stream
  Random random_;
  std::vector<Arrival> cycle_; // the first item of each stream, where they are periodic
  uint64_t count_ = 0;
  double items_due_ = 0; // at random times: the time at which an even rate of 1 a ns would have them
};

} // namespace millrace::batch
