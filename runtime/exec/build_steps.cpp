// Segments and steps of a run, with the handlers, streams and bodies that they have.
#include "exec/build.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "exec/body.h"
#include "exec/copy_step.h"
#include "exec/pending.h"
#include "exec/reach.h"
#include "exec/region.h"
#include "exec/run.h"
#include "exec/run_state.h"
#include "exec/state.h"
#include "exec/step.h"
#include "exec/tell.h"
#include "observe/printable.h"

namespace millrace::exec {

namespace {

device::Stream* make_stream(RunState& run, uint32_t domain, device::StreamKind kind) {
  device::Stream* const stream = run.devices[domain]->create_stream(kind);
  stream->bell = run.bell;
  run.streams[domain].push_back(stream);
  return stream;
}

// Of a device's step: copies have streams of their own, one a direction and one for those between peers.
device::Stream* stream_of(const RunState& run, const plan::Step& step) {
  if (step.kind != plan::StepKind::transfer) return run.compute[step.domain];
  if (run.outputs[step.outputs[0]].in_host_memory) return run.copy_out[step.domain];
  return run.outputs[step.inputs[0].output].in_host_memory ? run.copy_in[step.domain] : run.copy_peer[step.domain];
}

// The run's words and its time, for the handler's own use.
void lend(RunState& run, StepRun& step) {
  plugin::Instance& instance = *step.instance;
  instance.in_run = &step;
  if (run.options.log) {
    lend_log(step);
  } else if (run.options.on_message) {
    instance.on_log = [&run, name = step.handler->name](uint32_t level, std::string_view sentence, bool first) {
      static constexpr const char* kLevels[] = {"debug", "info", "warning", "error"};
      if (first && level >= MR_LOG_INFO && level <= MR_LOG_ERROR)
        run.options.on_message(std::string(kLevels[level]) + " " + name + ": " + printable(sentence));
    };
    for (const auto& said : instance.messages()) // when it was probed
      if (!said.noted) instance.on_log(said.level, said.sentence, true);
  }
  if (run.is_virtual) instance.clock_ns = [&run] { return run.now_ns(); };
}

void make_deferred(StepRun& step) {
  const size_t most = step.handler->info->max_pending;
  step.deferred = std::vector<Deferred>(most + 1 + kVoidedMax); // one more while it publishes
  for (Deferred& deferred : step.deferred) {
    deferred.outputs.reserve(step.raw_outputs.size());
    deferred.inputs.reserve(step.raw_inputs.size());
  }
  step.asynchronous = step.handler->info->traits & MR_TRAIT_ASYNCHRONOUS;
  step.counts_firings = step.asynchronous && !step.pace->clock->realtime();
  step.counted.reserve(most);
}

void* make_scratch(RunState& run, const plan::Step& step) {
  device::DeviceStatus status;
  device::Arena* arena = run.devices[step.domain]->allocate(step.scratch_bytes, {}, status);
  if (arena) return arena->base;
  throw Failure(
      Error{701,
            run.plan.domains[step.domain].name + " has no room for what " + step.name + " works in: " + status.sentence,
            {},
            {},
            "",
            ""});
}

// The handler of a step; a lane has an object of its own.
void give_handler(RunState& run, StepRun& step) {
  const plan::Step& plan = *step.plan;
  step.handler = &run.plan.handlers[plan.handler];
  step.instance = run.facts.handlers[plan.handler].instance.get();
  if (step.segment->plan->lane > 0) {
    run.clones.push_back(plan::clone(run.graph.handlers[plan.handler], *step.handler->info, *step.handler, host_table(),
                                     run.facts.watch));
    step.instance = run.clones.back().get();
    std::vector<mr_format> inputs, formats; // the formats that the plan settled
    for (const plan::StepInput& input : plan.inputs)
      inputs.push_back(input.output == plan::kNone ? mr_format{} : run.plan.outputs[input.output].format);
    for (uint32_t o : plan.outputs) formats.push_back(run.plan.outputs[o].format);
    step.instance->configure(inputs, formats);
  }
  step.self = step.instance->self();
  lend(run, step);
  step.process = step.handler->info->table->process;
  step.process_cuda = step.handler->info->table->process_cuda;
  step.finish = step.handler->info->table->finish;
}

// What bodies that run late are called with.
void make_bodies(StepRun& step) {
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
    body.tick.stands_in = !step.enqueuing;
    if (step.enqueuing) {
      body.tick.device = MR_DEVICE_CUDA;
      body.tick.library = step.enqueuing->library();
      body.tick.scratch = step.scratch;
    }
    body.tick.info = &body.info;
    body.tick.inputs = body.inputs.data();
    body.tick.outputs = body.outputs.data();
    body.tick.context = &body.context;
    body.context = {&step, 0, &body, nullptr};
  }
}

// Of a step on a device: where it is submitted to, and what it needs there.
void give_device(RunState& run, StepRun& step) {
  const SegmentRun& segment = *step.segment;
  const plan::Step& plan = *step.plan;
  step.device = run.devices[plan.domain];
  const bool runs_by_itself = step.handler && !step.process_cuda;
  step.enqueuing = runs_by_itself ? nullptr : run.enqueuing[plan.domain];
  step.stream = segment.plan->heavy ? make_stream(run, plan.domain, device::StreamKind::compute) : stream_of(run, plan);
  step.trace = &run.trace_of(*step.stream, plan);
  step.fences.resize(segment.pace->plan->slots);
  if (plan.kind == plan::StepKind::transfer) {
    step.copy_calls.resize(segment.pace->plan->slots);
    for (CopyCall& copy : step.copy_calls) copy.carried.reserve(plan.outputs.size());
    return;
  }
  if (plan.scratch_bytes > 0) step.scratch = make_scratch(run, plan);
  const bool in_region = plan.region != plan::kNone && !run.options.sync_devices;
  step.bodies.resize(in_region ? run.plan.regions[plan.region].slots : segment.pace->plan->slots);
  make_bodies(step);
}

void make_step(RunState& run, SegmentRun& segment, const plan::Step& plan_step, uint32_t index) {
  auto step = std::make_unique<StepRun>();
  step->run = &run;
  step->plan = &plan_step;
  step->index = index;
  step->segment = &segment;
  step->pace = segment.pace;
  step->shared = &run.shared[index];
  step->every = plan_step.every;
  if (plan_step.handler != plan::kNone) give_handler(run, *step);
  for (uint32_t o : plan_step.outputs) step->outputs.push_back(&run.outputs[o]);
  step->raw_inputs.resize(plan_step.inputs.size());
  step->raw_outputs.resize(plan_step.outputs.size());
  step->context.step = step.get();
  step->tick.size = sizeof(mr_tick);
  step->tick.device = MR_DEVICE_CPU;
  step->tick.inputs = step->raw_inputs.data();
  step->tick.outputs = step->raw_outputs.data();
  step->tick.input_count = static_cast<uint32_t>(step->raw_inputs.size());
  step->tick.output_count = static_cast<uint32_t>(step->raw_outputs.size());
  step->tick.host = &host_table();
  step->tick.context = &step->context;
  if (step->handler && step->handler->info->max_pending > 0) make_deferred(*step);
  if (segment.device) give_device(run, *step);
  if (segment.plan->lane == 0) run.step_runs[index] = step.get();
  segment.steps.push_back(std::move(step));
}

} // namespace

void make_streams(RunState& run) {
  const size_t count = run.devices.size();
  run.streams.resize(count);
  for (uint32_t d = 0; d < count; ++d) {
    const auto make = [&](device::StreamKind kind) {
      return run.plan.on_host(d) ? nullptr : make_stream(run, d, kind);
    };
    run.enqueuing.push_back(run.devices[d]->enqueuing());
    run.compute.push_back(make(device::StreamKind::compute));
    run.copy_in.push_back(make(device::StreamKind::copy_in));
    run.copy_out.push_back(make(device::StreamKind::copy_out));
    run.copy_peer.push_back(make(device::StreamKind::copy_peer));
  }
  run.submitting.resize(count);
  for (const plan::Segment& segment : run.plan.segments)
    if (segment.heavy && !run.submitting[segment.domain])
      run.submitting[segment.domain] = std::make_unique<std::mutex>();
  for (uint32_t d = 1; d < count && count > 2; ++d)
    if (run.enqueuing[d]) run.followed.push_back(run.devices[d]);
}

std::unique_ptr<SegmentRun> make_segment(RunState& run, const plan::Segment& plan_segment, uint64_t ordinal) {
  auto segment = std::make_unique<SegmentRun>();
  segment->run = &run;
  segment->plan = &plan_segment;
  segment->pace = run.paces[plan_segment.pace].get();
  segment->device = !run.plan.on_host(plan_segment.domain);
  segment->submitting = run.submitting[plan_segment.domain].get();
  segment->traced = run.options.trace_all && !run.is_virtual;
  segment->ordinal = ordinal;
  segment->progress = ordinal;
  if (segment->device) segment->fences.resize(segment->pace->plan->slots);
  if (segment->pace->clock->realtime())
    segment->ended_at_ns = std::make_unique<std::atomic<int64_t>[]>(segment->pace->plan->slots);
  return segment;
}

void make_segments(RunState& run) {
  run.shared.resize(run.plan.steps.size());
  run.step_runs.resize(run.plan.steps.size(), nullptr);
  run.first_errors.resize(run.plan.steps.size());
  run.segments.reserve(run.plan.segments.size() +
                       run.plan.steps.size()); // another cut makes more, and moves none in memory
  for (const plan::Segment& plan_segment : run.plan.segments) {
    run.segments.push_back(make_segment(run, plan_segment, plan_segment.lane));
    for (uint32_t step : plan_segment.steps) make_step(run, *run.segments.back(), run.plan.steps[step], step);
  }
  run.segments_left = static_cast<uint32_t>(run.segments.size());
}

void join_finishes(RunState& run) {
  for (StepRun* step : run.step_runs) {
    if (step->plan->kind != plan::StepKind::finish) continue;
    StepRun& body = *run.step_runs[step->plan->finishes];
    step->finishes = &body;
    body.finisher = step;
    body.called.resize(body.pace->plan->slots);
    step->raw_outputs.resize(body.outputs.size());
    step->tick.outputs = step->raw_outputs.data();
    step->tick.output_count = static_cast<uint32_t>(body.outputs.size());
    step->tick.input_count = static_cast<uint32_t>(body.inputs.size()); // what follows is what the body made
  }
}

void make_regions(RunState& run) {
  if (run.options.sync_devices) return; // each body by itself
  for (uint32_t r = 0; r < run.plan.regions.size(); ++r) {
    if (run.plan.regions[r].steps.empty()) continue;
    auto region = std::make_unique<RegionRun>();
    region->plan = &run.plan.regions[r];
    for (uint32_t s : region->plan->steps) {
      const bool rides = run.step_runs[s]->plan->kind == plan::StepKind::transfer;
      (rides ? region->riders : region->steps).push_back(run.step_runs[s]);
      run.step_runs[s]->region = region.get();
    }
    region->launched.resize(region->plan->slots);
    run.regions.push_back(std::move(region));
  }
}

} // namespace millrace::exec
