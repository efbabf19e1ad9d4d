// Counts lost values; see losses.h.
#include "exec/losses.h"

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

namespace {

uint64_t& of(Drops& drops, Cause cause) { return drops[static_cast<size_t>(cause)]; }

// Adds what was dropped on an edge before its reader took it. A gate that holds a whole handler back belongs to no
// edge: a value that is dropped at it makes no difference, or is superseded on the edge that it was meant for and
// counts there.
void add_edge_drops(const EdgePlaces& places, Drops& dropped) {
  for (const auto& [channel, entry] : places.channels) {
    const std::lock_guard lock(channel->mutex);
    add_drops(channel->dropped[entry], dropped);
  }
  for (const SourceState* source : places.sources) of(dropped, Cause::rate) += source->passed_over;
}

// Adds the values that the reader took and could not use.
void add_losses(const InputRun& input, Drops& dropped) {
  if (!input.totals) return;
  of(dropped, Cause::every) += input.totals->lost_by_every;
  of(dropped, Cause::input) += input.totals->lost_by_input;
  of(dropped, Cause::late) += input.totals->dropped_late;
}

} // namespace

void add_drops(const Drops& drops, CountsByCause& dropped) {
  for (size_t c = 0; c < drops.size(); ++c)
    if (drops[c] > 0) dropped[kCauseNames[c]] += drops[c];
}

void add_drops(const Drops& drops, Drops& sum) {
  for (size_t c = 0; c < drops.size(); ++c) sum[c] += drops[c];
}

std::vector<EdgePlaces> places_of_edges(const RunState& run) {
  const PlanRun& planned = run.planned;
  const plan::Plan& plan = planned.plan;
  std::vector<EdgePlaces> places(plan.edges.size());
  std::vector<std::vector<const HandlerRun*>> lanes(plan.steps.size());
  std::map<const plan::Step*, std::vector<const SourceState*>> sources;
  for (const HandlerRun* step : planned.handlers) lanes[step->index].push_back(step);
  for (const auto& clock : run.clocks)
    for (const SourceState& source : clock->sources) sources[source.step->plan].push_back(&source);
  for (const auto& channel : planned.channels)
    for (size_t n = 0; n < channel->plan->edges.size(); ++n)
      places[channel->plan->edges[n]].channels.emplace_back(channel.get(), channel->plan->entries[n]);
  for (size_t e = 0; e < places.size(); ++e) {
    const plan::EdgePlan& edge = plan.edges[e];
    if (edge.target_step != plan::kNone) {
      for (const HandlerRun* step : lanes[edge.target_step])
        places[e].readers.emplace_back(step, &step->inputs[edge.target_input]);
      if (const auto* give = dynamic_cast<const GiveRun*>(planned.step_runs[edge.target_step]))
        places[e].item = &give->inputs[edge.target_input];
    }
    if (edge.source_output == plan::kNone) continue; // its source is on another node
    const auto found = sources.find(&plan.steps[plan.outputs[edge.source_output].step]);
    if (found != sources.end()) places[e].sources = found->second;
  }
  return places;
}

uint32_t target_clock(const PlanRun& planned, const plan::EdgePlan& edge) {
  if (edge.target_step == plan::kNone) return plan::kNone;
  return planned.plan.paces[planned.plan.steps[edge.target_step].pace].clock;
}

Drops dropped_on(const EdgePlaces& places) {
  Drops dropped{};
  for (const auto& [step, input] : places.readers) add_losses(*input, dropped);
  if (places.item) add_losses(*places.item, dropped);
  add_edge_drops(places, dropped);
  return dropped;
}

Drops lost_by_clock(const RunState& run, uint32_t clock) {
  Drops lost{};
  const std::vector<EdgePlaces> places = places_of_edges(run);
  for (size_t e = 0; e < places.size(); ++e)
    if (target_clock(run.planned, run.planned.plan.edges[e]) == clock) add_drops(dropped_on(places[e]), lost);
  return lost;
}

Drops all_drops(const RunState& run) {
  Drops dropped{};
  for (const EdgePlaces& places : places_of_edges(run)) add_edge_drops(places, dropped);
  for (const StepRun* step : run.planned.step_runs)
    for (const InputRun& input : step->inputs) add_losses(input, dropped);
  return dropped;
}

} // namespace millrace::exec
