// Outputs, paces and channels of a run, and what paces have to do with each other.
#include "exec/build.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "exec/channel.h"
#include "exec/reader.h"
#include "exec/run_state.h"
#include "plan/planned_value.h"

namespace millrace::exec {

void make_outputs(RunState& run) {
  run.outputs = std::vector<OutputRun>(run.plan.outputs.size());
  for (size_t o = 0; o < run.outputs.size(); ++o) {
    OutputRun& output = run.outputs[o];
    output.plan = &run.plan.outputs[o];
    run.empty_values.push_back(plan::empty_value(*output.plan));
    const plan::Pace& pace = run.plan.paces[run.plan.steps[output.plan->step].pace];
    output.places = std::make_unique<SlotPlace[]>(pace.slots);
    output.mask = pace.slots - 1;
    output.ring = output.plan->ring == plan::kNone ? nullptr : run.rings[output.plan->ring].get();
    output.retain = output.plan->retain;
    output.in_host_memory = run.plan.in_host_memory(output.plan->domain);
    output.holds = output.ring && output.ring->dynamic() && (output.plan->owns || output.plan->origin != plan::kNone);
  }
}

void make_paces(RunState& run) {
  for (uint32_t p = 0; p < run.plan.paces.size(); ++p) {
    auto pace = std::make_unique<PaceRun>();
    pace->run = &run;
    pace->plan = &run.plan.paces[p];
    pace->clock = &run.plan.clocks[pace->plan->clock];
    pace->index = p;
    pace->window = pace->plan->window;
    pace->mask = pace->plan->slots - 1;
    pace->infos.resize(pace->plan->slots);
    pace->tick_index = std::make_unique<std::atomic<uint64_t>[]>(pace->plan->slots);
    pace->tick_media_ns = std::make_unique<std::atomic<int64_t>[]>(pace->plan->slots);
    pace->latency = std::make_unique<PaceRun::Latency[]>(pace->plan->slots);
    pace->watch = TickWatch(run.options.trace_all);
    if (pace->plan->kind == plan::PaceKind::clock && pace->clock->crowd_ticks + pace->clock->owed_ticks > 0)
      pace->recent_media_ns.resize(std::max(pace->clock->crowd_ticks, pace->clock->owed_ticks + 1));
    for (OutputRun& output : run.outputs)
      if (output.holds && run.plan.steps[output.plan->step].pace == p) pace->held_outputs.push_back(&output);
    run.paces.push_back(std::move(pace));
  }
  for (const plan::Channel& plan_channel : run.plan.channels) {
    auto channel = std::make_unique<ChannelRun>();
    channel->plan = &plan_channel;
    channel->ring.resize(plan_channel.capacity);
    const size_t values =
        plan_channel.kind == plan::ChannelKind::gate ? run.plan.steps[plan_channel.from].inputs.size() : 1;
    for (QueuedTick& tick : channel->ring) tick.slots.resize(values);
    channel->current.slots.resize(values);
    channel->dropped.resize(values);
    channel->queued.resize(values);
    for (size_t e = 0; e < plan_channel.edges.size(); ++e)
      if (run.plan.edges[plan_channel.edges[e]].policy == graph::Policy::queue)
        channel->queued[plan_channel.entries[e]] = true;
    run.channels.push_back(std::move(channel));
  }
}

void join_paces(RunState& run) {
  for (auto& pace : run.paces) {
    if (pace->plan->kind == plan::PaceKind::behind) {
      pace->parent = run.paces[pace->plan->parent].get();
      pace->gate = &as<GateRun>(*run.step_runs[pace->plan->gate]);
      pace->entry = &as<EntryRun>(*run.step_runs[pace->plan->entry]);
      pace->feed = pace->gate->channel;
      continue;
    }
    for (uint32_t source : pace->plan->sources) {
      SourceState state;
      state.step = &as<SourceRun>(*run.step_runs[source]);
      state.value.resize(state.step->outputs.size());
      state.next.resize(state.step->outputs.size());
      pace->sources.push_back(std::move(state));
    }
  }
}

void join_clocks(RunState& run) {
  for (const auto& channel : run.channels)
    if (channel->plan->kind == plan::ChannelKind::align && channel->to->pace->clock->realtime())
      run.timed_steps.push_back(&as<ResolveRun>(*channel->to));
  const auto clock_of = [&](uint32_t step) { return run.plan.paces[run.plan.steps[step].pace].clock; };
  for (auto& pace : run.paces) {
    if (pace->plan->kind != plan::PaceKind::clock || pace->clock->leaders.empty()) continue;
    for (const uint32_t leader : pace->clock->leaders) pace->leaders.push_back(run.paces[leader].get());
    std::vector<bool> led(run.plan.clocks.size());
    led[pace->plan->clock] = true;
    for (bool changed = true; changed;) {
      changed = false;
      for (const plan::Channel& channel : run.plan.channels) {
        if (!led[clock_of(channel.from)] || led[clock_of(channel.to)]) continue;
        led[clock_of(channel.to)] = changed = true;
      }
    }
    for (auto& channel : run.channels)
      if (clock_of(channel->plan->to) == pace->plan->clock && !led[clock_of(channel->plan->from)])
        pace->fed_by.push_back(channel.get());
  }
}

} // namespace millrace::exec
