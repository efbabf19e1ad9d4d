// Counts lost values; see losses.h.
#include "exec/losses.h"

#include <algorithm>
#include <mutex>

#include "exec/channel.h"
#include "exec/group.h"
#include "exec/handler_run.h"
#include "exec/run_state.h"
#include "exec/source.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

void add_drops(const Drops& drops, CountsByCause& dropped) {
  for (size_t c = 0; c < drops.size(); ++c)
    if (drops[c] > 0) dropped[kCauseNames[c]] += drops[c];
}

namespace {

// Adds what was dropped on an edge before its reader took it. A gate that holds a whole handler back belongs to no
// edge: a value that is dropped at it makes no difference, or is superseded on the edge that it was meant for and
// counts there.
void add_edge_drops(const RunState& run, uint32_t edge, CountsByCause& dropped) {
  const PlanRun& planned = run.planned;
  for (const auto& channel : planned.channels) {
    const auto& edges = channel->plan->edges;
    const auto at = std::find(edges.begin(), edges.end(), edge);
    if (at == edges.end()) continue;
    const std::lock_guard lock(channel->mutex);
    add_drops(channel->dropped[channel->plan->entries[static_cast<size_t>(at - edges.begin())]], dropped);
  }
  if (planned.plan.edges[edge].source_output == plan::kNone) return; // its source is on another node
  const plan::Step& producer = planned.plan.steps[planned.plan.outputs[planned.plan.edges[edge].source_output].step];
  for (const auto& clock : run.clocks)
    for (const SourceState& source : clock->sources)
      if (source.step->plan == &producer && source.passed_over > 0) dropped["rate"] += source.passed_over;
}

// Adds the values that the reader took and could not use.
void add_losses(const InputRun& input, CountsByCause& dropped) {
  if (!input.totals) return;
  if (input.totals->lost_by_every > 0) dropped["every"] += input.totals->lost_by_every;
  if (input.totals->lost_by_input > 0) dropped["input"] += input.totals->lost_by_input;
  if (input.totals->dropped_late > 0) dropped["late"] += input.totals->dropped_late;
}

} // namespace

void add_counts(const CountsByCause& counts, CountsByCause& sum) {
  for (const auto& [cause, count] : counts) sum[cause] += count;
}

uint32_t target_clock(const PlanRun& planned, const plan::EdgePlan& edge) {
  if (edge.target_step == plan::kNone) return plan::kNone;
  return planned.plan.paces[planned.plan.steps[edge.target_step].pace].clock;
}

const GiveRun* give_of(const PlanRun& planned, const plan::EdgePlan& edge) {
  return edge.target_step == plan::kNone ? nullptr : dynamic_cast<const GiveRun*>(planned.step_runs[edge.target_step]);
}

CountsByCause dropped_on(const RunState& run, uint32_t index) {
  CountsByCause dropped;
  const plan::EdgePlan& edge = run.planned.plan.edges[index];
  for (const HandlerRun* step : run.planned.handlers) // its lanes
    if (step->index == edge.target_step) add_losses(step->inputs[edge.target_input], dropped);
  if (const GiveRun* give = give_of(run.planned, edge)) add_losses(give->inputs[edge.target_input], dropped);
  add_edge_drops(run, index, dropped);
  return dropped;
}

CountsByCause lost_by_clock(const RunState& run, uint32_t clock) {
  CountsByCause lost;
  const std::vector<plan::EdgePlan>& edges = run.planned.plan.edges;
  for (uint32_t e = 0; e < edges.size(); ++e)
    if (target_clock(run.planned, edges[e]) == clock) add_counts(dropped_on(run, e), lost);
  return lost;
}

void count_drops(const RunState& run, CountsByCause& dropped) {
  for (uint32_t e = 0; e < run.planned.plan.edges.size(); ++e) add_edge_drops(run, e, dropped);
  for (const StepRun* step : run.planned.step_runs)
    for (const InputRun& input : step->inputs) add_losses(input, dropped);
}

} // namespace millrace::exec
