// Measures how long measured ticks take from their beginning to each sink. If the clock has beats, a tick begins when
// it is due; else it begins when its sources are asked for it. Time that the thread of a reader spent reading before
// that does not count. The tick has reached a sink when the sink's call is over.
#include "exec/sink_latency.h"

#include <algorithm>

#include "exec/handler_run.h"
#include "exec/run_state.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/predict.h"

namespace millrace::exec {

void watch_sinks(RunState& run) {
  PlanRun& planned = run.planned;
  planned.sinks = plan::predict_paths(planned.plan);
  const auto is_sink = [&](const HandlerRun& step) {
    return std::any_of(planned.sinks.begin(), planned.sinks.end(),
                       [&](const auto& path) { return path.sink == step.index; });
  };
  for (HandlerRun* step : planned.handlers)
    if (is_sink(*step)) step->sink_latency = std::make_unique<SinkLatency>();
}

void record_sink_latency(HandlerRun& step, uint64_t ordinal) {
  PaceRun& pace = *step.pace;
  if (!step.sink_latency || !pace.is_measured(ordinal)) return;
  const PaceRun::Latency& latency = pace.latency[ordinal & pace.mask];
  const int64_t took = step.run->now_ns() - latency.from_ns;
  step.sink_latency->times.add(took);
  if (step.run->planned.plan.home_of(pace.plan->clock) != pace.plan->node) {
    const int64_t error_ns = latency.error_ns + step.run->time->error_ns();
    if (error_ns > step.sink_latency->error_ns) step.sink_latency->error_ns.set(error_ns);
  }
  if (ordinal == 0) step.sink_latency->first_ns.set(took);
}

void copy_latencies(const PaceRun& pace, Histogram& sum) {
  sum.clear();
  for (const auto& segment : pace.run->planned.segments)
    if (segment->pace == &pace) sum.merge(segment->latencies);
}

} // namespace millrace::exec
