// Builds the inputs of steps, and the stamps by which they wait for steps of other segments.
#include "exec/build.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "exec/channel.h"
#include "exec/group.h"
#include "exec/pending.h"
#include "exec/run_state.h"
#include "exec/source.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// The output whose values this one is a copy of.
uint32_t before_copies(const RunState& run, uint32_t output) {
  for (;;) {
    const plan::Step& step = run.planned.plan.steps[run.planned.plan.outputs[output].step];
    if (!step.is<plan::CopyStep>()) return output;
    const auto at = std::find(step.outputs.begin(), step.outputs.end(), output) - step.outputs.begin();
    output = step.inputs[static_cast<size_t>(at)].output;
  }
}

void add_inputs(RunState& run, StepRun& step) {
  PlanRun& planned = run.planned;
  for (const plan::StepInput& plan_input : step.plan->inputs) {
    InputRun input;
    input.delay = plan_input.delay;
    input.keeps = plan_input.keeps;
    input.required = plan_input.required;
    input.idle_without = plan_input.idle_without;
    input.initial_empty = plan_input.initial_empty;
    input.repeat_last = plan_input.repeat_last;
    input.calls = plan_input.calls;
    input.edge = plan_input.edge;
    if (plan_input.output != plan::kNone) {
      input.output = &planned.outputs[plan_input.output];
      // A value that a device made or copied here comes with a fence, also if it passed through from another pace.
      input.may_be_late = run.has_devices;
      // On a device a value is kept until the last body that may look at it is done, not only issued.
      const uint32_t issued = step.on.device ? step.pace->plan->room : 0;
      if (input.keeps > 0 || (input.repeat_last && step.on.device)) input.kept.resize(input.keeps + 1 + issued);
    }
    const bool queued = input.output && step.called() && input.edge != plan::kNone &&
                        planned.plan.edges[input.edge].policy == graph::Policy::queue;
    if (queued) input.queue = &planned.outputs[before_copies(run, plan_input.output)];
    step.reads_queue = step.reads_queue || queued;
    if (const HandlerRun* handler = step.called()) input.totals = &handler->life->inputs[step.inputs.size()];
    step.inputs.push_back(std::move(input));
  }
  for (uint32_t before : step.plan->after)
    if (!planned.plan.on_host(planned.plan.steps[before].domain))
      step.after_on_device.push_back(planned.step_runs[before]);
}

// The word of a step whose outputs may be settled later; null: it has none.
const std::atomic<uint64_t>* owed_by(StepRun& step) {
  if (const auto* give = dynamic_cast<const GiveRun*>(&step)) return &give->oldest_owed;
  return may_owe(step) ? &step.called()->oldest_owed : nullptr;
}

// Sets what a step has to wait for: everything that is not before it in its own segment.
void wire(RunState& run, StepRun& step) {
  const bool alone = step.segment->plan->lanes == 1;
  step.plain = step.plan->is<plan::HandlerStep>() && !step.on.device;
  step.fed_by_others = false;
  for (InputRun& input : step.inputs) {
    if (!input.output) continue;
    StepRun& producer = *run.planned.step_runs[input.output->plan->step];
    const bool same = alone && producer.segment == step.segment && !owed_by(producer);
    input.producer = same ? nullptr : producer.shared;
    step.plain = step.plain && !run.has_devices && input.delay == 0 && input.keeps == 0;
    step.fed_by_others = step.fed_by_others || !same;
  }
  step.after.clear();
  for (uint32_t before : step.plan->after) {
    const StepRun& other = *run.planned.step_runs[before];
    const bool same = alone && other.segment == step.segment && !other.on.device;
    step.after.push_back(same ? nullptr : other.shared);
    if (!same) step.plain = false;
  }
}

} // namespace

void make_inputs(RunState& run) {
  for (auto& step : run.planned.steps) add_inputs(run, *step);
}

void join_segments(RunState& run) {
  PlanRun& planned = run.planned;
  for (auto& pace : planned.paces) pace->segments.clear();
  for (auto& segment : planned.segments) {
    segment->head = false;
    segment->first = nullptr;
    segment->pending_steps.clear();
    if (!segment->done) segment->pace->segments.push_back(segment.get());
  }
  for (auto& pace : planned.paces) {
    if (pace->segments.empty()) continue;
    (pace->entry                    ? pace->entry->segment
     : pace->clock->sources.empty() ? pace->segments[0]
                                    : pace->clock->sources[0].step->segment)
        ->head = true;
  }
  for (auto& segment : planned.segments) {
    for (StepRun* step : segment->steps) {
      if (!step->plan->is<plan::SourceStep>()) wire(run, *step); // a reader's thread may be in its call
      if (const auto* owed = owed_by(*step)) segment->pending_steps.push_back({step, owed});
    }
    if (segment->head || segment->steps.empty()) continue;
    for (const InputRun& input : segment->steps[0]->inputs)
      if (!segment->first && input.delay == 0) segment->first = input.producer;
  }
}

void wire_stamps(RunState& run) {
  PlanRun& planned = run.planned;
  for (size_t s = 0; s < planned.plan.steps.size(); ++s) {
    const plan::Pace& pace = planned.plan.paces[planned.plan.steps[s].pace];
    planned.shared[s].mask = pace.slots - 1;
    if (planned.plan.steps[s].outputs.empty()) planned.shared[s].own_cells = std::make_unique<SlotCell[]>(pace.slots);
    planned.shared[s].cells = planned.plan.steps[s].outputs.empty()
                                  ? planned.shared[s].own_cells.get()
                                  : planned.outputs[planned.plan.steps[s].outputs[0]].cells.get();
    planned.shared[s].wanted = run.has_devices;
  }
  want_stamps(run);
}

namespace {

// All of a step's ordinals below this are settled. It follows from where the step stands in its segment; sources and
// entries are settled by the head when it admits a tick. No thread may be in the segment.
uint64_t settled_below(const SegmentRun& segment, size_t position) {
  const StepRun& step = *segment.steps[position];
  if (step.plan->is<plan::SourceStep>() || step.plan->is<plan::EntryStep>()) return step.pace->admitted.load();
  return segment.ordinal + (segment.in_tick.load() && position < segment.cursor ? 1 : 0);
}

} // namespace

void want_stamps(RunState& run) {
  PlanRun& planned = run.planned;
  std::vector<bool> wanted(planned.shared.size(), false);
  const auto want = [&](const StepStamps* waited_for) {
    if (waited_for) wanted[static_cast<size_t>(waited_for - planned.shared.data())] = true;
  };
  for (auto& step : planned.steps) {
    for (const InputRun& input : step->inputs) want(input.producer);
    for (const StepStamps* before : step->after) want(before);
  }
  for (auto& segment : planned.segments) {
    for (size_t i = 0; i < segment->steps.size(); ++i) {
      StepStamps& shared = *segment->steps[i]->shared;
      if (!wanted[segment->steps[i]->index] || shared.wanted) continue;
      shared.wanted = true;
      const uint64_t settled = settled_below(*segment, i);
      for (uint64_t back = 1; back <= std::min<uint64_t>(settled, shared.mask + 1); ++back)
        shared.stamp(settled - back).store(settled - back + 1);
    }
  }
}

} // namespace millrace::exec
