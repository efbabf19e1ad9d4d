// Builds the outputs, paces and channels of a run, and connects the paces.
#include "exec/build.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "exec/channel.h"
#include "exec/guard_bytes.h"
#include "exec/reader.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "observe/error_codes.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/planned_value.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// The number of values that a tick has in the channel.
size_t values_of(const plan::Plan& plan, uint32_t index) {
  const plan::Channel& channel = plan.channels[index];
  if (channel.kind != plan::ChannelKind::gate) return 1;
  if (channel.from != plan::kNone) return plan.steps[channel.from].inputs.size();
  const plan::Pace& pace = plan.paces[plan.steps[channel.to].pace];
  return std::find_if(pace.feeds.begin(), pace.feeds.end(),
                      [&](const plan::Feed& feed) { return feed.channel == index; })
      ->count;
}

} // namespace

void make_outputs(RunState& run) {
  PlanRun& planned = run.planned;
  planned.outputs = std::vector<OutputRun>(planned.plan.outputs.size());
  for (size_t o = 0; o < planned.outputs.size(); ++o) {
    OutputRun& output = planned.outputs[o];
    output.plan = &planned.plan.outputs[o];
    planned.empty_values.push_back(plan::empty_value(*output.plan));
    const plan::Pace& pace = planned.plan.paces[planned.plan.steps[output.plan->step].pace];
    output.cells = std::make_unique<SlotCell[]>(pace.slots);
    output.mask = pace.slots - 1;
    output.ring = output.plan->ring == plan::kNone ? nullptr : planned.rings[output.plan->ring].get();
    output.retain = output.plan->retain;
    output.in_host_memory = planned.plan.in_host_memory(output.plan->domain);
    output.guarded = output.ring && output.plan->owns &&
                     guard_bytes_of(planned.plan.rings[output.plan->ring], output.in_host_memory) > 0;
    output.holds = output.ring && output.ring->dynamic() && (output.plan->owns || output.plan->origin != plan::kNone);
  }
}

void make_paces(RunState& run) {
  PlanRun& planned = run.planned;
  for (uint32_t p = 0; p < planned.plan.paces.size(); ++p) {
    auto pace = std::make_unique<PaceRun>();
    pace->run = &run;
    pace->plan = &planned.plan.paces[p];
    pace->is_clock = pace->plan->kind == plan::PaceKind::clock;
    pace->clock = run.clocks[pace->plan->clock].get();
    pace->clock->plan = &planned.plan.clocks[pace->plan->clock];
    pace->index = p;
    pace->window = pace->plan->window;
    pace->mask = pace->plan->slots - 1;
    pace->infos.resize(pace->plan->slots);
    pace->tick_index = LineVector<std::atomic<uint64_t>>(pace->plan->slots);
    pace->tick_media_ns = LineVector<std::atomic<int64_t>>(pace->plan->slots);
    pace->latency = LineVector<PaceRun::Latency>(pace->plan->slots);
    pace->watch = TickWatch(run.options.trace_all);
    if (pace->is_clock && pace->clock->plan->crowd_ticks + pace->clock->plan->owed_ticks > 0)
      pace->recent_media_ns.resize(std::max(pace->clock->plan->crowd_ticks, pace->clock->plan->owed_ticks + 1));
    for (OutputRun& output : planned.outputs)
      if (output.holds && planned.plan.steps[output.plan->step].pace == p) pace->held_outputs.push_back(&output);
    planned.paces.push_back(std::move(pace));
  }
  for (uint32_t c = 0; c < planned.plan.channels.size(); ++c) {
    const plan::Channel& plan_channel = planned.plan.channels[c];
    auto channel = std::make_unique<ChannelRun>();
    channel->plan = &plan_channel;
    channel->ring.resize(plan_channel.capacity);
    const size_t values = values_of(planned.plan, c);
    for (QueuedTick& tick : channel->ring) tick.slots.resize(values);
    channel->current.slots.resize(values);
    channel->dropped.resize(values);
    channel->queued.resize(values);
    for (size_t e = 0; e < plan_channel.edges.size(); ++e)
      if (planned.plan.edges[plan_channel.edges[e]].policy == graph::Policy::queue)
        channel->queued[plan_channel.entries[e]] = true;
    planned.channels.push_back(std::move(channel));
  }
  for (const plan::CrossingPlan& crossing : planned.plan.crossings)
    planned.channels[crossing.channel]->keeps_old = crossing.delivery == graph::Delivery::reliable;
}

namespace {

// Sets if a stream is in the seat that the clock is.
void settle_seat(PaceRun& pace) {
  ClockRun& clock = *pace.clock;
  clock.seat->is_there = !clock.plan->is_seat;
  clock.seat->is_awaited = !clock.plan->absent.empty();
  if (clock.seat->is_there) clock.seat->name = clock.plan->name;
  if (clock.seat->is_awaited) clock.failure = Error{code::probe_failed, clock.plan->absent, {}, {}, "", ""};
  if (!clock.plan->begins_later()) return;
  clock.seat->vacant = true;
  clock.halted = true;
  clock.stage = Stage::vacant;
  clock.rests = true;
  pace.idle_until_ns = INT64_MAX;
}

} // namespace

void join_paces(RunState& run) {
  PlanRun& planned = run.planned;
  for (auto& pace : planned.paces) {
    if (pace->is_clock) settle_seat(*pace);
    if (pace->plan->node != planned.plan.node || pace->plan->kind == plan::PaceKind::batch)
      continue; // it has no steps here, or make_groups() joins it
    if (pace->plan->kind == plan::PaceKind::far) {
      pace->entry = &as<EntryRun>(*planned.step_runs[pace->plan->entry]);
      for (const plan::Feed& feed : pace->plan->feeds)
        pace->feeds.push_back({planned.channels[feed.channel].get(), feed.first});
      continue;
    }
    if (pace->plan->kind == plan::PaceKind::decoupled) {
      pace->parent = planned.paces[pace->plan->parent].get();
      pace->gate = &as<GateRun>(*planned.step_runs[pace->plan->gate]);
      pace->entry = &as<EntryRun>(*planned.step_runs[pace->plan->entry]);
      pace->feed = pace->gate->channel;
      continue;
    }
    for (uint32_t source : pace->plan->sources) {
      SourceState state;
      state.step = &as<SourceRun>(*planned.step_runs[source]);
      state.value.resize(state.step->outputs.size());
      state.next.resize(state.step->outputs.size());
      pace->clock->sources.push_back(std::move(state));
    }
  }
}

void join_clocks(RunState& run) {
  PlanRun& planned = run.planned;
  for (const auto& channel : planned.channels)
    if (channel->plan->kind == plan::ChannelKind::align && channel->to->pace->clock->plan->realtime())
      planned.timed_steps.push_back(&as<ResolveRun>(*channel->to));
  // A channel between two clocks has both ends here: from another node its values come through a far pace of the first.
  const auto clock_of = [&](uint32_t step) { return planned.plan.paces[planned.plan.steps[step].pace].clock; };
  for (auto& pace : planned.paces) {
    if (pace->plan->led_by.empty() || pace->plan->node != planned.plan.node) continue;
    for (const uint32_t leader : pace->plan->led_by) pace->leaders.push_back(planned.paces[leader].get());
    std::vector<bool> led(planned.plan.clocks.size());
    led[pace->plan->clock] = true;
    for (bool changed = true; changed;) {
      changed = false;
      for (const plan::Channel& channel : planned.plan.channels) {
        if (!plan::is_whole(channel)) continue;
        if (!led[clock_of(channel.from)] || led[clock_of(channel.to)]) continue;
        led[clock_of(channel.to)] = changed = true;
      }
    }
    for (auto& channel : planned.channels)
      if (plan::is_whole(*channel->plan) && clock_of(channel->plan->to) == pace->plan->clock &&
          !led[clock_of(channel->plan->from)])
        pace->fed_by.push_back(channel.get());
  }
}

} // namespace millrace::exec
