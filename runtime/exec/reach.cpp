// How long sampled ticks take from their beginning to each sink: admitted, or due under realtime, until the sink's call
// is over.
#include <algorithm>

#include "exec/state.h"

namespace millrace::exec {

void RunState::watch_sinks() {
  sinks = plan::predict_paths(plan);
  for (const auto& segment : segments)
    for (const auto& step : segment->steps)
      if (std::any_of(sinks.begin(), sinks.end(), [&](const auto& path) { return path.sink == step->index; }))
        step->reach = std::make_unique<Histogram>();
}

void note_reached(StepRun& step, uint64_t ordinal) {
  PaceRun& pace = *step.pace;
  if (!step.reach || !pace.sampled(ordinal)) return;
  step.reach->add(step.run->now_ns() - pace.latency[ordinal & pace.mask].from_ns);
}

} // namespace millrace::exec
