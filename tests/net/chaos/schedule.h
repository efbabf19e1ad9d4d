// The faults of a run in the order of their times: from a script, or drawn at random. Pure: the same seed, the same
// faults.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "draw.h"
#include "script.h"

namespace millrace::chaos {

struct Event {
  int64_t at_ns = 0; // since the start of the proxy
  Fault fault;
  bool operator==(const Event&) const = default;
};

// The mean distance of random faults unless the command line says otherwise.
inline constexpr int64_t kMeanIntervalNs = 2'000'000'000;

class Schedule {
 public:
  // A script's events. Each `every` draws from a generator of its own, so a new statement shifts no other.
  Schedule(const Script& script, uint64_t seed);
  // Faults of all kinds without end. Distances are within 10 and 190 % of the mean, durations within 10 and 150 %.
  static Schedule at_random(uint64_t seed, int64_t mean_interval_ns);

  // The time of the next event; empty if none is left.
  std::optional<int64_t> next_at() const;
  // Removes the next event and returns it; statements of one time come in the order of the script.
  std::optional<Event> next();

 private:
  struct Line {
    Statement statement;
    Draw draw;
    std::optional<int64_t> next_ns; // empty: no more
    int64_t done = 0;
  };

  void draw_next(Line& line) const;

  std::vector<Line> lines_;
  int64_t mean_interval_ns_ = 0; // 0: the faults are the script's
};

} // namespace millrace::chaos
