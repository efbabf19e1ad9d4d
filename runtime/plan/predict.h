// What the plan expects each path through it to take: for every step that nothing comes after, the sum of the costs on
// the longest way there.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace millrace::plan {

struct PredictedPath {
  uint32_t sink = 0;    // a handler's step that no other reads from
  double us = 0;        // from the tick's beginning until the sink is done, with nothing in its way
  uint32_t unknown = 0; // handlers on the way whose cost is not known, and counts as nothing in `us`
};

// In the order of the steps. A step begins when its inputs are there and what comes before it in its segment is done;
// a queue between clocks, a delay and `latest` begin anew, since no tick waits for the same tick across them.
std::vector<PredictedPath> predict_paths(const Plan& plan);

// The longest of these paths.
struct PredictedLatency {
  double us = 0;        // at least, where something is unknown
  uint32_t unknown = 0; // handlers of the whole plan whose cost is not known
};
PredictedLatency predict_latency(const Plan& plan);

} // namespace millrace::plan
