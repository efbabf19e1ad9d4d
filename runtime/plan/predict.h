// Predicts the latency of a plan: for every sink, the sum of the costs on the longest path to it.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::plan {

struct Plan;

struct PredictedPath {
  uint32_t sink = 0;    // a handler's step that no other reads from
  double us = 0;        // from the tick's beginning until the sink is done, with nothing in its way
  uint32_t unknown = 0; // handlers on the way whose cost is not known, and counts as nothing in `us`
};

// The paths in the order of the steps. A step begins when its inputs are there and the step before it in its segment is
// done. A queue between clocks, a delay and `latest` begin a new path, since no tick waits for the same tick across
// them.
std::vector<PredictedPath> predict_paths(const Plan& plan);

// The longest of these paths, and of those to crossings that leave the plan's node. The time on links is left out.
struct PredictedLatency {
  double us = 0;        // a lower bound if `unknown` > 0
  uint32_t unknown = 0; // handlers of the plan's node whose cost is not known
};
PredictedLatency predict_latency(const Plan& plan);

} // namespace millrace::plan
