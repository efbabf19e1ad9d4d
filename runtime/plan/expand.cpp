// Turns handlers and edge policies into steps. It finds the decoupled handlers first (1.6), since each group of them
// has a pace of its own; then it makes the handlers' steps, connects the edges, and marks the gates that let every tick
// in.
#include "plan/expand.h"

#include <algorithm>

#include "plan/clock_circles.h"
#include "plan/groups.h"
#include "plan/memory.h"
#include "plan/time_rounding.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// Leaves one instance to a handler with an input that repeats or keeps earlier values. One instance of several does not
// see the ticks of the others, so it could not tell the last value.
void keep_whole(Plan& plan) {
  for (HandlerPlan& handler : plan.handlers) {
    if (handler.lanes == 1 || handler.step == kNone) continue;
    for (const StepInput& input : plan.steps[handler.step].inputs) {
      if (!input.repeat_last && input.keeps == 0) continue;
      handler.lanes = 1;
      plan.notes.push_back(handler.name + " runs as one instance: an input of it repeats or keeps earlier values");
      break;
    }
  }
}

} // namespace

uint32_t Expansion::ticks_owed(uint32_t h) const {
  const DraftHandler& handler = draft.handlers[h];
  if (counted_by[h] == h) return handler.info->max_pending;
  return handler.info->max_pending * handler.declared->every + gap_of(h);
}

uint32_t Expansion::gap_of(uint32_t h) const {
  if (draft.handlers[h].info->max_pending == 0) return 0;
  uint32_t gap = draft.handlers[h].info->gap;
  for (const DraftEdge& edge : draft.edges)
    if (edge.target == h) gap = std::max(gap, edge.declared->gap);
  return gap;
}

uint32_t Expansion::add_step(StepKind kind, std::string name, uint32_t pace) {
  Step step;
  step.kind = std::move(kind);
  step.name = std::move(name);
  step.pace = pace;
  plan.steps.push_back(std::move(step));
  return static_cast<uint32_t>(plan.steps.size() - 1);
}

uint32_t Expansion::add_output(uint32_t step, std::string name, const mr_format& format, uint32_t domain) {
  Output output;
  output.step = step;
  output.port = static_cast<uint32_t>(plan.steps[step].outputs.size());
  plan.steps[step].outputs.push_back(static_cast<uint32_t>(plan.outputs.size()));
  output.name = std::move(name);
  output.format = format;
  output.domain = domain;
  plan.outputs.push_back(output);
  return static_cast<uint32_t>(plan.outputs.size() - 1);
}

void expand(Draft& draft) {
  Expansion expansion(draft);
  make_paces(expansion);
  make_handler_steps(expansion);
  price_groups(draft);
  find_circles(draft);
  find_rounding(draft);
  connect_edges(expansion);
  open_gates(expansion);
  keep_whole(draft.plan);
  for (Clock& clock : draft.plan.clocks)
    if (clock.driver != kNone) clock.driver = draft.handlers[clock.driver].step;
}

} // namespace millrace::plan
