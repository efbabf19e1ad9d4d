// What steps read and what they wait for: inputs, and stamps of steps that others carry forward.
#include "exec/build.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "exec/channel.h"
#include "exec/pending.h"
#include "exec/run_state.h"
#include "exec/source.h"

namespace millrace::exec {

namespace {

// The output whose values this one is a copy of.
uint32_t before_copies(const RunState& run, uint32_t output) {
  for (;;) {
    const plan::Step& step = run.plan.steps[run.plan.outputs[output].step];
    if (!step.is<plan::CopyStep>()) return output;
    const auto at = std::find(step.outputs.begin(), step.outputs.end(), output) - step.outputs.begin();
    output = step.inputs[static_cast<size_t>(at)].output;
  }
}

void add_inputs(RunState& run, StepRun& step) {
  for (const plan::StepInput& plan_input : step.plan->inputs) {
    InputRun input;
    input.delay = plan_input.delay;
    input.keeps = plan_input.keeps;
    input.required = plan_input.required;
    input.initial_empty = plan_input.initial_empty;
    input.repeat_last = plan_input.repeat_last;
    input.calls = plan_input.calls;
    input.edge = plan_input.edge;
    if (plan_input.output != plan::kNone) {
      input.output = &run.outputs[plan_input.output];
      // What a device made, or carried here, comes with a fence; so does what passed through from another pace.
      input.may_be_late = run.has_devices;
      // On a device a value is kept until the last body that may look at it is done, not only issued.
      const uint32_t issued = step.on.device ? step.pace->plan->room : 0;
      if (input.keeps > 0 || (input.repeat_last && step.on.device)) input.kept.resize(input.keeps + 1 + issued);
    }
    const bool queued = input.output && step.called() && input.edge != plan::kNone &&
                        run.plan.edges[input.edge].policy == graph::Policy::queue;
    if (queued) input.queue = &run.outputs[before_copies(run, plan_input.output)];
    step.reads_queue = step.reads_queue || queued;
    step.inputs.push_back(std::move(input));
  }
  for (uint32_t before : step.plan->after)
    if (!run.plan.on_host(run.plan.steps[before].domain)) step.after_on_device.push_back(run.step_runs[before]);
}

// What a step has to wait for: all that is not before it in its own segment.
void wire(RunState& run, StepRun& step) {
  const bool alone = step.segment->plan->lanes == 1;
  step.plain = step.plan->is<plan::HandlerStep>() && !step.on.device;
  step.fed_by_others = false;
  for (InputRun& input : step.inputs) {
    if (!input.output) continue;
    StepRun& producer = *run.step_runs[input.output->plan->step];
    const bool same = alone && producer.segment == step.segment && !may_owe(producer);
    input.producer = same ? nullptr : producer.shared;
    step.plain = step.plain && !run.has_devices && input.delay == 0 && input.keeps == 0;
    step.fed_by_others = step.fed_by_others || !same;
  }
  step.after.clear();
  for (uint32_t before : step.plan->after) {
    const StepRun& other = *run.step_runs[before];
    const bool same = alone && other.segment == step.segment && !other.on.device;
    step.after.push_back(same ? nullptr : other.shared);
    if (!same) step.plain = false;
  }
}

} // namespace

void make_inputs(RunState& run) {
  for (auto& step : run.steps) add_inputs(run, *step);
}

void join_segments(RunState& run) {
  for (auto& pace : run.paces) pace->segments.clear();
  for (auto& segment : run.segments) {
    segment->head = false;
    segment->first = nullptr;
    segment->pending_steps.clear();
    if (!segment->done) segment->pace->segments.push_back(segment.get());
  }
  for (auto& pace : run.paces) {
    const bool behind = pace->plan->kind == plan::PaceKind::behind;
    if (pace->segments.empty()) continue;
    (behind                  ? pace->entry->segment
     : pace->sources.empty() ? pace->segments[0]
                             : pace->sources[0].step->segment)
        ->head = true;
  }
  for (auto& segment : run.segments) {
    for (StepRun* step : segment->steps) {
      if (!step->plan->is<plan::SourceStep>()) wire(run, *step); // a reader's thread may be in its call
      if (may_owe(*step)) segment->pending_steps.push_back(step->called());
    }
    if (segment->head || segment->steps.empty()) continue;
    for (const InputRun& input : segment->steps[0]->inputs)
      if (!segment->first && input.delay == 0) segment->first = input.producer;
  }
}

void wire_stamps(RunState& run) {
  for (size_t s = 0; s < run.plan.steps.size(); ++s) {
    const plan::Pace& pace = run.plan.paces[run.plan.steps[s].pace];
    run.shared[s].mask = pace.slots - 1;
    if (run.plan.steps[s].outputs.empty()) run.shared[s].own_places = std::make_unique<SlotPlace[]>(pace.slots);
    run.shared[s].places = run.plan.steps[s].outputs.empty() ? run.shared[s].own_places.get()
                                                             : run.outputs[run.plan.steps[s].outputs[0]].places.get();
    run.shared[s].wanted = run.has_devices;
  }
  want_stamps(run);
}

namespace {

// Below it all of a step's ordinals are settled: where it stands in its segment, and what the head settles when it
// admits a tick. Nobody is in the segment.
uint64_t settled_below(const SegmentRun& segment, size_t position) {
  const StepRun& step = *segment.steps[position];
  if (step.plan->is<plan::SourceStep>() || step.plan->is<plan::EntryStep>()) return step.pace->admitted.load();
  return segment.ordinal + (segment.in_tick.load() && position < segment.cursor ? 1 : 0);
}

} // namespace

void want_stamps(RunState& run) {
  std::vector<bool> wanted(run.shared.size(), false);
  const auto want = [&](const StepShared* waited_for) {
    if (waited_for) wanted[static_cast<size_t>(waited_for - run.shared.data())] = true;
  };
  for (auto& step : run.steps) {
    for (const InputRun& input : step->inputs) want(input.producer);
    for (const StepShared* before : step->after) want(before);
  }
  for (auto& segment : run.segments) {
    for (size_t i = 0; i < segment->steps.size(); ++i) {
      StepShared& shared = *segment->steps[i]->shared;
      if (!wanted[segment->steps[i]->index] || shared.wanted) continue;
      shared.wanted = true;
      const uint64_t settled = settled_below(*segment, i);
      for (uint64_t back = 1; back <= std::min<uint64_t>(settled, shared.mask + 1); ++back)
        shared.stamp(settled - back).store(settled - back + 1);
    }
  }
}

} // namespace millrace::exec
