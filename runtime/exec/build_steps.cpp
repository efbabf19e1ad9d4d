// Builds the segments and steps of a run, with their handlers, streams and bodies.
#include "exec/build.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "exec/channel.h"
#include "exec/copy_step.h"
#include "exec/finish_step.h"
#include "exec/group.h"
#include "exec/handler_state.h"
#include "exec/items_run.h"
#include "exec/pending.h"
#include "exec/region.h"
#include "exec/run.h"
#include "exec/run_log.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "exec/sink_latency.h"
#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "observe/printable.h"
#include "plan/domain.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

device::Stream* make_stream(RunState& run, uint32_t domain, device::StreamKind kind) {
  device::Stream* const stream = run.devices[domain]->create_stream(kind);
  stream->wakeup = run.wakeup.bells;
  run.streams[domain].push_back(stream);
  return stream;
}

// The stream of a device's step. Copies have streams of their own: one for each direction and one for copies between
// peers.
device::Stream* stream_of(const RunState& run, const plan::Step& step) {
  if (!step.is<plan::CopyStep>()) return run.compute[step.domain];
  if (run.planned.outputs[step.outputs[0]].in_host_memory) return run.copy_out[step.domain];
  return run.planned.outputs[step.inputs[0].output].in_host_memory ? run.copy_in[step.domain]
                                                                   : run.copy_peer[step.domain];
}

// Connects the handler to the run's log and, in virtual time, to the run's clock.
void lend(RunState& run, HandlerRun& step) {
  plugin::Instance& instance = *step.instance;
  instance.in_run = &step;
  if (run.options.log) {
    lend_log(step);
  } else if (run.options.on_message) {
    instance.on_log = [&run, name = step.name](uint32_t level, std::string_view sentence, bool first) {
      static constexpr const char* kLevels[] = {"debug", "info", "warning", "error"};
      if (first && level >= MR_LOG_INFO && level <= MR_LOG_ERROR)
        run.options.on_message(std::string(kLevels[level]) + " " + name + ": " + printable(sentence));
    };
    for (const auto& said : instance.messages()) // when it was probed
      if (!said.noted) instance.on_log(said.level, said.sentence, is_on_terminal(run, said));
  }
  if (run.is_virtual || run.options.time) instance.clock_ns = [&run] { return run.now_ns(); };
}

void make_deferred(HandlerRun& step) {
  const size_t most = step.instance->info().max_pending;
  step.deferred = std::vector<Deferred>(most + 1 + kVoidedMax); // one more while it publishes
  for (Deferred& deferred : step.deferred) {
    deferred.outputs.reserve(step.raw_outputs.size());
    deferred.inputs.reserve(step.raw_inputs.size());
  }
  step.asynchronous = step.instance->info().traits & MR_TRAIT_ASYNCHRONOUS;
  step.counts_firings = step.asynchronous && !step.pace->clock->plan->realtime();
  step.counted.reserve(most);
}

// Every lane but the first has an instance of its own.
HandlerLife& life_of(RunState& run, uint32_t handler, uint32_t lane) {
  auto& lives = run.lives[handler];
  if (lives.size() > lane) return *lives[lane];
  MR_ASSERT(lives.size() == lane, "lanes are made in their order");
  auto life = std::make_unique<HandlerLife>();
  life->instance = run.live.instances[handler].get();
  if (lane > 0) {
    life->own =
        plan::clone(run.planned.plan, run.planned.graph, handler, life->instance->type(), host_table(), run.live.watch);
    life->instance = life->own.get();
  }
  lives.push_back(std::move(life));
  return *lives.back();
}

void give_handler(RunState& run, HandlerRun& step) {
  const plan::Step& plan = *step.plan;
  const uint32_t number = plan.handler();
  step.handler = &run.planned.plan.handlers[number];
  step.life = &life_of(run, number, step.segment->plan->lane);
  step.life->inputs = LineVector<InputTotals>(plan.inputs.size());
  take_instance(run, step);
  step.process = step.instance->table().process;
  step.finish = step.instance->table().finish;
}

// Lays out the arguments of bodies, which outlive the submission.
void make_bodies(BodyRun& step) {
  const plan::Step& plan = *step.plan;
  for (BodyCall& body : step.bodies) {
    body.inputs.resize(plan.inputs.size());
    body.frozen.resize(plan.inputs.size());
    body.absent.resize(plan.inputs.size());
    body.input_blocks.resize(plan.inputs.size());
    body.outputs.resize(plan.outputs.size());
    body.given.resize(plan.outputs.size());
    body.output_blocks.resize(plan.outputs.size());
    body.tick = step.tick;
    body.tick.stands_in = !step.on.enqueuing;
    if (step.on.enqueuing) {
      body.tick.device = MR_DEVICE_CUDA;
      body.tick.library = step.on.enqueuing->library();
      body.tick.scratch = step.scratch;
    }
    body.tick.info = &body.info;
    body.tick.inputs = body.inputs.data();
    body.tick.outputs = body.outputs.data();
    body.tick.context = &body.context;
    body.context = {&step, 0, &body, nullptr};
  }
}

// Sets where a step on a device is submitted to.
void give_device(RunState& run, StepRun& step, bool enqueues) {
  const SegmentRun& segment = *step.segment;
  const uint32_t domain = step.plan->domain;
  step.on.device = run.devices[domain];
  step.on.enqueuing = enqueues ? run.enqueuing[domain] : nullptr;
  step.on.stream =
      segment.plan->heavy ? make_stream(run, domain, device::StreamKind::compute) : stream_of(run, *step.plan);
  step.on.fences.resize(segment.pace->plan->slots);
  step.trace = &run.trace_of(*step.on.stream, *step.plan);
}

// Says which stream the handler works for: that of the instance, else the only one that its clock paces.
void give_stream(const RunState& run, HandlerRun& step) {
  const plan::HandlerPlan& handler = *step.handler;
  const bool is_instance = !handler.stream.empty();
  const plan::Clock& clock = run.planned.plan.clocks[handler.clock];
  step.has_stream = clock.is_group; // that of each item
  const graph::StreamSet* const set = run.planned.graph.find_set(is_instance ? handler.for_each : clock.set);
  if (!set || (!is_instance && set->shared_clock)) return;
  const graph::Stream* const stream = set->find(is_instance ? handler.stream : clock.name);
  if (!stream) return;
  step.has_stream = true;
  step.tick.stream = static_cast<uint32_t>(stream - set->items.data());
}

void fill_handler(RunState& run, HandlerRun& step) {
  give_handler(run, step);
  step.lay_out(step.plan->inputs.size(), step.plan->outputs.size());
  give_stream(run, step);
  step.tick.follows = step.handler->facts.follows;
  make_state(run, step);
  step.context.step = &step;
  if (step.instance->info().max_pending > 0) make_deferred(step);
  run.planned.handlers.push_back(&step);
}

void fill(RunState& run, HandlerRun& step) { fill_handler(run, step); }

void fill(RunState& run, ItemsRun& step) {
  fill_handler(run, step);
  const plugin::HandlerInfo& info = step.instance->info();
  const uint32_t most = step.pace->plan->rows;
  step.takes_firings = true;
  step.process_items = step.instance->table().process_items;
  step.finish_items = step.instance->table().finish_items;
  step.items_max = info.items_max;
  if (run.options.measure_bodies) step.by_items.resize(static_cast<size_t>(std::bit_width(most)));
  step.rows.resize(most);
  step.ticks.resize(most);
  for (ItemsRun::Row& row : step.rows) {
    row.call.lay_out(step.plan->inputs.size(), step.plan->outputs.size());
    row.call.tick.context = &row.call.context;
  }
  for (const auto& port : info.ports)
    if (!port.is_input()) step.is_dense_output.push_back(port.raw.flags & MR_PORT_DENSE);
  for (const uint64_t bytes : step.plan->as<plan::HandlerStep>().gathers)
    step.gathered.push_back(bytes > 0 ? std::make_unique<std::byte[]>(bytes) : nullptr);
}

void fill(RunState& run, BodyRun& step) {
  fill_handler(run, step);
  const plan::Step& plan = *step.plan;
  step.process_cuda = step.instance->table().process_cuda;
  give_device(run, step, step.process_cuda != nullptr);
  if (plan.scratch_bytes() > 0)
    step.scratch =
        step.on.device->body_address(take_memory(run, plan, plan.scratch_bytes(), "what " + plan.name + " works in"));
  const bool in_region = plan.region != plan::kNone && !run.options.sync_devices;
  step.bodies.resize(in_region ? run.planned.plan.regions[plan.region].slots : step.pace->plan->slots);
  make_bodies(step);
}

void fill(RunState& run, CopyRun& step) {
  give_device(run, step, true);
  step.copy_calls.resize(step.pace->plan->slots);
  const bool of_group = step.pace->plan->kind == plan::PaceKind::batch;
  const uint32_t rows = of_group ? step.pace->plan->rows : 0;
  for (CopyCall& copy : step.copy_calls) copy.carried.reserve(step.plan->outputs.size() + rows);
  step.takes_firings = of_group;
  step.wanted.resize(rows);
  step.sources.resize(rows);
}

void fill(RunState&, FinishRun&) {} // join_steps()

void fill(RunState&, GiveRun&) {} // make_groups()
void fill(RunState&, DealRun&) {}

void fill(RunState& run, ChannelEnd& step) {
  if (step.plan->channel() != plan::kNone) step.channel = run.planned.channels[step.plan->channel()].get();
}

template <class Kind>
void make_step(RunState& run, SegmentRun& segment, uint32_t index) {
  PlanRun& planned = run.planned;
  auto step = std::make_unique<Kind>();
  step->run = &run;
  step->plan = &planned.plan.steps[index];
  step->index = index;
  step->segment = &segment;
  step->pace = segment.pace;
  step->shared = &planned.shared[index];
  step->every = step->plan->every;
  for (uint32_t o : step->plan->outputs) step->outputs.push_back(&planned.outputs[o]);
  fill(run, *step);
  if (segment.plan->lane == 0) planned.step_runs[index] = step.get();
  segment.steps.push_back(step.get());
  planned.steps.push_back(std::move(step));
}

// Makes a step of the kind that the plan says.
struct MakeStep {
  RunState& run;
  SegmentRun& segment;
  uint32_t index;

  void operator()(const plan::HandlerStep& handler) const {
    const plan::Plan& plan = run.planned.plan;
    const bool takes_items =
        segment.pace->plan->kind == plan::PaceKind::batch && plan.type_of(plan.handlers[handler.handler]).items_max > 0;
    segment.device ? make_step<BodyRun>(run, segment, index)
    : takes_items  ? make_step<ItemsRun>(run, segment, index)
                   : make_step<HandlerRun>(run, segment, index);
  }
  void operator()(const plan::SourceStep&) const { make_step<SourceRun>(run, segment, index); }
  void operator()(const plan::FinishStep&) const { make_step<FinishRun>(run, segment, index); }
  void operator()(const plan::CopyStep&) const { make_step<CopyRun>(run, segment, index); }
  void operator()(const plan::GateStep&) const { make_step<GateRun>(run, segment, index); }
  void operator()(const plan::EntryStep&) const { make_step<EntryRun>(run, segment, index); }
  void operator()(const plan::PostStep&) const { make_step<PostRun>(run, segment, index); }
  void operator()(const plan::ResolveStep&) const { make_step<ResolveRun>(run, segment, index); }
  void operator()(const plan::GiveStep&) const { make_step<GiveRun>(run, segment, index); }
  void operator()(const plan::DealStep&) const { make_step<DealRun>(run, segment, index); }
};

void join_finish(FinishRun& step, BodyRun& body) {
  step.body = &body;
  body.finisher = &step;
  body.finish_due.resize(body.pace->plan->slots);
  step.lay_out(step.plan->inputs.size(), body.outputs.size());
  step.tick.stream = body.tick.stream;
  step.tick.input_count = static_cast<uint32_t>(body.inputs.size()); // the inputs after these are the body's outputs
}

} // namespace

void CallArguments::lay_out(size_t input_count, size_t output_count) {
  raw_inputs.resize(input_count);
  raw_outputs.resize(output_count);
  tick.size = sizeof(mr_tick);
  tick.device = MR_DEVICE_CPU;
  tick.inputs = raw_inputs.data();
  tick.outputs = raw_outputs.data();
  tick.input_count = static_cast<uint32_t>(input_count);
  tick.output_count = static_cast<uint32_t>(output_count);
  tick.host = &host_table();
  tick.context = &context;
}

void make_streams(RunState& run) {
  const size_t count = run.devices.size();
  run.streams.resize(count);
  for (uint32_t d = 0; d < count; ++d) {
    const auto make = [&](device::StreamKind kind) {
      return run.planned.plan.on_host(d) ? nullptr : make_stream(run, d, kind);
    };
    run.enqueuing.push_back(run.devices[d]->enqueuing());
    run.compute.push_back(make(device::StreamKind::compute));
    run.copy_in.push_back(make(device::StreamKind::copy_in));
    run.copy_out.push_back(make(device::StreamKind::copy_out));
    run.copy_peer.push_back(make(device::StreamKind::copy_peer));
  }
  run.submitting.resize(count);
  for (const plan::Segment& segment : run.planned.plan.segments)
    if (segment.heavy && !run.submitting[segment.domain])
      run.submitting[segment.domain] = std::make_unique<std::mutex>();
  for (uint32_t d = RunState::kFirstAccelerator; d < count && count > 2; ++d)
    if (run.enqueuing[d]) run.followed.push_back(run.devices[d]);
}

void take_instance(RunState& run, HandlerRun& step) {
  step.instance = step.life->instance;
  step.self = step.instance->self();
  const std::string& stream = step.pace->clock->seat->name; // whoever gives an instance to a seat has the lock
  const bool comes = step.pace->clock->plan->has_room && !step.handler->stream.empty() && !stream.empty();
  step.name = comes ? graph::instance_name(step.handler->written_as, stream) : step.handler->name;
  lend(run, step);
}

std::unique_ptr<SegmentRun> make_segment(RunState& run, const plan::Segment& plan_segment, uint64_t ordinal) {
  auto segment = std::make_unique<SegmentRun>();
  segment->run = &run;
  segment->plan = &plan_segment;
  segment->pace = run.planned.paces[plan_segment.pace].get();
  segment->device = !run.planned.plan.on_host(plan_segment.domain);
  segment->submitting = run.submitting[plan_segment.domain].get();
  segment->traced = run.options.trace_all && !run.is_virtual;
  segment->stride = uint64_t{plan_segment.lanes} * segment->pace->plan->rows;
  segment->ordinal = ordinal;
  segment->progress = ordinal;
  segment->epochs_over = segment->pace->epochs_over.load();
  if (segment->device) segment->fences.resize(segment->pace->plan->slots);
  if (segment->pace->clock->plan->realtime())
    segment->ended_at_ns = LineVector<std::atomic<int64_t>>(segment->pace->plan->slots);
  return segment;
}

void make_segments(RunState& run) {
  PlanRun& planned = run.planned;
  planned.shared.resize(planned.plan.steps.size());
  planned.step_runs.resize(planned.plan.steps.size(), nullptr);
  run.lives.resize(planned.plan.handlers.size());
  planned.segments.reserve(planned.plan.segments.size() +
                           planned.plan.steps.size()); // a second cut adds some, and none may move in memory
  for (const plan::Segment& plan_segment : planned.plan.segments) {
    planned.segments.push_back(
        make_segment(run, plan_segment, uint64_t{plan_segment.lane} * planned.plan.paces[plan_segment.pace].rows));
    for (uint32_t step : plan_segment.steps)
      std::visit(MakeStep{run, *planned.segments.back(), step}, planned.plan.steps[step].kind);
  }
  planned.segments_left = static_cast<uint32_t>(planned.segments.size());
}

void join_steps(RunState& run) {
  PlanRun& planned = run.planned;
  for (StepRun* step : planned.step_runs) {
    if (const auto* plan = std::get_if<plan::FinishStep>(&step->plan->kind))
      join_finish(as<FinishRun>(*step), as<BodyRun>(*planned.step_runs[plan->body]));
    if (const auto* plan = std::get_if<plan::CopyStep>(&step->plan->kind))
      for (size_t r = 0; r < plan->readers.size(); ++r)
        as<CopyRun>(*step).readers.push_back(
            {planned.step_runs[plan->readers[r]], plan->members.empty() ? 0 : plan->members[r]});
  }
  for (auto& channel : planned.channels) {
    if (channel->plan->from != plan::kNone) channel->from = &as<ChannelEnd>(*planned.step_runs[channel->plan->from]);
    if (channel->plan->to != plan::kNone) channel->to = &as<ChannelEnd>(*planned.step_runs[channel->plan->to]);
  }
}

void make_regions(RunState& run) {
  PlanRun& planned = run.planned;
  if (run.options.sync_devices) return; // each body by itself
  for (uint32_t r = 0; r < planned.plan.regions.size(); ++r) {
    if (planned.plan.regions[r].steps.empty()) continue;
    auto region = std::make_unique<RegionRun>();
    region->plan = &planned.plan.regions[r];
    for (uint32_t s : region->plan->steps) {
      StepRun& step = *planned.step_runs[s];
      step.on.region = region.get();
      if (step.plan->is<plan::CopyStep>())
        region->fused_downloads.push_back(&as<CopyRun>(step));
      else
        region->steps.push_back(&as<BodyRun>(step));
    }
    region->launched.resize(region->plan->slots);
    planned.regions.push_back(std::move(region));
  }
}

} // namespace millrace::exec
