// Bodies that enqueue (cuda): called on the host when they are submitted, they leave work on the device's stream. What
// a value is (its record) the host knows at once, its bytes come behind the fence (semantics.md 4.1, 4.4, 4.5).
//
// A region of them is called once for each slot, when the run begins, and captured. From then on a tick of the region
// is one launch, and the host looks at the region's border only: what enters it must be there and of the kind that the
// capture saw, what leaves it gets its slot, its fence and its times. Where that does not hold, because an input is
// missing or has another size than planned, the bodies of this tick are called one by one on the stream.
#include <algorithm>
#include <cstring>
#include <map>
#include <thread>

#include "exec/state.h"

namespace millrace::exec {

namespace {

// While a region is captured its inputs carry these as their times, so that it can be seen which of them its outputs
// take over.
constexpr int64_t kMarkTick = INT64_MIN + 1, kMarkFirst = INT64_MIN + 2;

// Spans with nothing in them, of which the median counts.
constexpr size_t kEmptySpans = 15;

device::TickNumbers numbers_of(const mr_tick_info& info) { return {info.index, info.media_time_ns}; }

BodyCall& body_of(StepRun& step, uint64_t ordinal) { return step.bodies[ordinal % step.bodies.size()]; }

// Whether a value is what the capture saw, as far as bodies look at it on the host. The count of records they read on
// the device.
bool same_kind(const mr_value& value, const mr_value& recorded) {
  if (value.header.kind != recorded.header.kind || value.header.layout != recorded.header.layout) return false;
  if (value.header.kind == MR_KIND_IMAGE)
    return std::memcmp(&value.as.image, &recorded.as.image, sizeof(mr_image)) == 0;
  if (value.header.kind == MR_KIND_TENSOR)
    return std::memcmp(&value.as.tensor, &recorded.as.tensor, sizeof(mr_tensor)) == 0;
  return true;
}

// An output that repeats an input is a copy of it: on a device of what the device alone knows too.
void repeat_input(StepRun& step, BodyCall& body, size_t o, const mr_input& input) {
  mr_output& output = body.outputs[o];
  output = body.given[o];
  if (!input.value) return;
  *output.value = *input.value;
  output.value->header.extent_bytes = std::min(input.value->header.extent_bytes, output.capacity);
  copy_value(step, output.data, input.data, *output.value);
  output.state = MR_OUTPUT_OWN;
}

void fail_body(StepRun& step, BodyCall& body) {
  body.failed = true;
  body.to_finish = false;
  for (size_t o = 0; o < body.outputs.size(); ++o) {
    body.outputs[o].state = MR_OUTPUT_SILENT;
    if (step.handler->on_error == graph::OnError::bypass)
      repeat_input(step, body, o, body.inputs[bypass_input(step, o)]);
  }
}

// Called by the device while it submits: the handler enqueues its work. What it says of its outputs is known then.
void enqueue_body(void* context) {
  BodyCall& body = *static_cast<BodyCall*>(context);
  StepRun& step = *body.context.step;
  body.tick.native_stream = step.stream->native;
  body.tick.device_tick = step.stream->tick;
  for (mr_output& output : body.outputs) output.state = MR_OUTPUT_SILENT;
  body.given = body.outputs; // of one size: no allocation
  mr_status status = step.process_cuda(step.self, &body.tick);
  // What the body says is in host memory. Counts that kernels write are bounded by their host reader once the fence
  // completes.
  status = status_of_call(step, status, body.outputs, body.inputs);
  if (status == MR_END) step.run->stopping.store(true);
  body.to_finish = status == MR_OK;
  if (status < 0) return fail_body(step, body);
  for (size_t o = 0; o < body.outputs.size(); ++o)
    if (body.outputs[o].state == MR_OUTPUT_FORWARDED) repeat_input(step, body, o, body.inputs[body.outputs[o].source]);
}

// What bodies are told of values while they are captured, in the place of the records of the rings: ticks may be in
// flight, whose records others read.
class CaptureRecords {
 public:
  mr_value& of(const memory::Block& block) {
    const auto [at, is_new] = records_.try_emplace(block.record);
    if (is_new) at->second = *block.record;
    return at->second;
  }

 private:
  std::map<const mr_value*, mr_value> records_;
};

// A call that sees no tick: every input is there, and the times of all are marks.
void ready_to_capture(StepRun& step, uint32_t slot, CaptureRecords& records) {
  BodyCall& body = step.bodies[slot];
  freeze(step, body, slot);
  body.inputs = body.frozen;
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (step.inputs[i].output) body.inputs[i].value = &records.of(step.inputs[i].output->ring->block(slot));
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    body.outputs[o].value = &records.of(*body.output_blocks[o]);
    body.outputs[o].value->header.present = 1;
  }
  body.info = {};
  body.info.media_time_ns = kMarkTick;
  body.failed = false;
}

// Which of the region's steps a body has to come behind: those that it reads, and those whose readers it overwrites.
std::vector<uint32_t> needed_by(const RegionRun& region, const StepRun& step) {
  std::vector<uint32_t> needed;
  const auto add = [&](uint32_t plan_step) {
    for (uint32_t s = 0; s < region.steps.size(); ++s)
      if (region.steps[s]->index == plan_step) needed.push_back(s);
  };
  for (const plan::StepInput& input : step.plan->inputs)
    if (input.output != plan::kNone) add(step.run->plan.outputs[input.output].step);
  for (uint32_t before : step.plan->after) add(before);
  return needed;
}

// What a body may leave empty: its finish() may still make something of it.
bool is_for_finish(const StepRun& step, const OutputRun& output) {
  return step.finisher && step.run->plan.in_host_memory(output.plan->domain);
}

// One slot's graph. Null where it cannot be had, with the reason in `why`.
std::unique_ptr<device::Recording> capture_slot(RegionRun& region, uint32_t slot, CaptureRecords& records,
                                                std::string& why) {
  StepRun& first = *region.steps[0];
  device::Device& device = *first.device;
  for (StepRun* step : region.steps) ready_to_capture(*step, slot, records);
  int64_t mark = kMarkFirst;
  for (const RegionRun::Entry& entry : region.entries) {
    mr_value& record = records.of(entry.input->output->ring->block(slot));
    record = entry.recorded;
    record.header.pts_ns = mark++;
  }
  device.begin_record(*first.stream);
  for (StepRun* step : region.steps) {
    BodyCall& body = step->bodies[slot];
    const std::vector<uint32_t> needed = needed_by(region, *step);
    device.run(*first.stream, {&enqueue_body, &body, step->handler->name.c_str(), 0, nullptr, &needed});
    if (body.failed) why = step->handler->name + " failed while it was captured: " + step->instance->error();
    for (size_t o = 0; o < step->outputs.size(); ++o) {
      if (body.outputs[o].state != MR_OUTPUT_SILENT) continue;
      body.outputs[o].value->header.present = 0;
      if (why.empty() && !is_for_finish(*step, *step->outputs[o]))
        why = step->handler->name + " left " + step->outputs[o]->plan->name + " empty while it was captured";
    }
  }
  for (const StepRun* rider : region.riders) {
    const memory::Block& from = rider->inputs[0].output->ring->block(slot);
    const memory::Block& to = rider->outputs[0]->ring->block(slot);
    copy_value(first, to.data, from.data, records.of(from));
  }
  std::unique_ptr<device::Recording> recording = device.end_record(*first.stream);
  if (why.empty() && !recording) why = device.record_failure();
  return why.empty() ? std::move(recording) : nullptr;
}

// What enters the region, and what of it somebody outside reads or waits for.
void find_border(RegionRun& region) {
  const RunState& run = *region.steps[0]->run;
  const auto is_inside = [&](uint32_t s) { // its bodies: what copies take along is seen from outside
    const plan::Step& step = run.plan.steps[s];
    return step.region == region.steps[0]->plan->region && step.kind == plan::StepKind::handler;
  };
  region.entries.clear();
  region.exits.clear();
  region.stamped.clear();
  for (StepRun* step : region.steps) {
    for (InputRun& input : step->inputs)
      if (input.output && !is_inside(input.output->plan->step))
        region.entries.push_back({&input, *input.output->ring->block(0).record});
    bool waited_for = false;
    for (uint32_t o : step->plan->outputs) {
      bool read_outside = false;
      for (uint32_t s = 0; s < run.plan.steps.size(); ++s)
        for (const plan::StepInput& input : run.plan.steps[s].inputs)
          read_outside = read_outside || (input.output == o && !is_inside(s));
      if (read_outside) region.exits.push_back({&const_cast<RunState&>(run).outputs[o], -1, {}});
      waited_for = waited_for || read_outside;
    }
    for (uint32_t s = 0; s < run.plan.steps.size(); ++s)
      for (uint32_t before : run.plan.steps[s].after)
        waited_for = waited_for || (before == step->index && !is_inside(s));
    if (waited_for) region.stamped.push_back(step);
  }
}

// Whose times the values that leave the region have: the marks that they carry say it.
void learn_times(RegionRun& region) {
  for (RegionRun::Exit& exit : region.exits) {
    const int64_t mark = exit.recorded[0].header.pts_ns;
    const bool of_entry = mark >= kMarkFirst && mark < kMarkFirst + static_cast<int64_t>(region.entries.size());
    exit.times_of = of_entry ? static_cast<int32_t>(mark - kMarkFirst) : -1;
  }
}

void leave_to_streams(RegionRun& region, const std::string& why) {
  RunState& run = *region.steps[0]->run;
  for (StepRun* step : region.steps) { // its riders know by themselves which ticks were launched
    step->calls += region.replays;
    for (InputRun& input : step->inputs)
      if (input.output) input.delivered += region.replays;
    step->region = nullptr;
  }
  region.recordings.clear();
  if (run.options.on_message)
    run.options.on_message("warning " + region.steps[0]->handler->name + " and " +
                           std::to_string(region.steps.size() - 1) + " more run on streams: " + why);
}

// Whether the host knows of all that enters that it is there and as the capture saw it.
bool as_captured(const RegionRun& region, uint64_t ordinal) {
  for (const RegionRun::Entry& entry : region.entries) {
    const Slot& slot = entry.input->output->at(ordinal);
    if (!slot.value || region.steps[0]->run->plan.in_host_memory(entry.input->output->plan->domain) ||
        !same_kind(*slot.value, entry.recorded))
      return false;
  }
  return true;
}

void settle_exits(RegionRun& region, uint64_t ordinal, const device::Fence& fence) {
  const mr_tick_info& info = region.steps[0]->pace->info(ordinal);
  for (RegionRun::Entry& entry : region.entries) // first, since an exit may be written over an entry
    entry.header = entry.input->output->at(ordinal).value->header;
  for (RegionRun::Exit& exit : region.exits) {
    memory::Block& block = exit.output->ring->take(ordinal);
    const mr_value& recorded = exit.recorded[ordinal % region.plan->slots];
    if (!recorded.header.present) {
      block.present.store(0, std::memory_order_relaxed);
      Slot& slot = open_slot(*exit.output, ordinal, block);
      slot.unknown = true;
      slot.fence = fence;
      continue;
    }
    *block.record = recorded;
    mr_header& header = block.record->header;
    header.pts_ns = info.media_time_ns;
    if (exit.times_of >= 0) {
      const mr_header& from = region.entries[static_cast<size_t>(exit.times_of)].header;
      header.pts_ns = from.pts_ns;
      header.duration_ns = from.duration_ns;
      header.stream = from.stream;
    }
    Slot& slot = open_slot(*exit.output, ordinal, block);
    slot.fence = fence;
    if (region.steps[0]->run->plan.in_host_memory(exit.output->plan->domain)) await_host_block(slot);
  }
}

// The small copies that were in the launch.
void settle_riders(RegionRun& region, uint64_t ordinal, const device::Fence& fence) {
  for (StepRun* rider : region.riders) {
    const Slot& source = rider->inputs[0].output->at(ordinal);
    memory::Block& block = rider->outputs[0]->ring->take(ordinal);
    *block.record = *source.value;
    block.present.store(1, std::memory_order_relaxed);
    count_late(block);
    open_slot(*rider->outputs[0], ordinal, block).unknown = true; // until the fence says that the device did not fail
    ++rider->copies;
    rider->bytes_copied += source.value->header.extent_bytes;
    leave_fence(*rider, ordinal, fence);
    stamp(*rider, ordinal);
  }
  region.launched[ordinal % region.plan->slots] = ordinal + 1;
}

// For finish(); before the body's stamp.
void note_called(StepRun& step, uint64_t ordinal, bool called) {
  if (!step.finisher) return;
  step.called[ordinal & step.pace->mask] = called;
  step.called_below = ordinal + 1;
}

void launch(RegionRun& region, uint64_t ordinal) {
  StepRun& first = *region.steps[0];
  device::Device& device = *first.device;
  const RunState& run = *first.run;
  const int64_t begin_ns = run.options.on_launch ? run.now_ns() : 0;
  for (const RegionRun::Entry& entry : region.entries)
    wait_for(device, *first.stream, entry.input->output->at(ordinal).fence);
  for (const StepRun* step : region.steps)
    for (const StepRun* before : step->after_on_device)
      if (before->region != &region) wait_for(device, *first.stream, before->fences[ordinal & before->pace->mask]);
  const mr_tick_info& info = first.pace->info(ordinal);
  const bool sampled = has_span(info.index) && device.begin_span(*first.stream);
  device.replay(*first.stream, *region.recordings[ordinal % region.plan->slots], numbers_of(info));
  if (sampled) device.end_span(*first.stream, span_of(region.times));
  const device::Fence fence = device.signal(*first.stream);
  if (run.options.on_launch) run.options.on_launch(info.index, begin_ns, run.now_ns());
  if (fence.word->load(std::memory_order_relaxed) == device::kFailed) first.run->watch_device(region.plan->domain);
  settle_exits(region, ordinal, fence);
  first.run->note_submitted(first, ordinal, fence);
  first.segment->fences[ordinal & first.pace->mask] = fence;
  for (StepRun* step : region.stamped) step->fences[ordinal & step->pace->mask] = fence;
  for (StepRun* step : region.steps) {
    step->last_fence = fence;
    note_called(*step, ordinal, true);
  }
  ++region.replays;
  settle_riders(region, ordinal, fence);
  for (StepRun* step : region.stamped) stamp(*step, ordinal);
}

enum class Timing { as_it_comes, held }; // held: its device time without what the host takes to submit it
void call_body(StepRun& step, uint64_t ordinal, Timing timing);

// Live parameters changed, or a handler has to restart: bodies are called anew, so that their kernels get the new
// values. False while one of them may still run.
bool capture_again(RegionRun& region, uint64_t ordinal) {
  for (StepRun* step : region.steps)
    if (!at_rest(*step)) return false;
  bool changed = false;
  for (StepRun* step : region.steps) changed = restart_if_asked(*step, step->pace->info(ordinal).index) || changed;
  region.changes_seen = SIZE_MAX;
  for (StepRun* step : region.steps) {
    const size_t before = step->changes_seen;
    change_live(*step, ordinal);
    changed = changed || step->changes_seen != before;
    region.changes_seen = std::min<size_t>(region.changes_seen, step->changes_seen);
  }
  if (changed) capture_region(region);
  return true;
}

} // namespace

void capture_region(RegionRun& region) {
  region.recordings.clear();
  if (region.entries.empty() && region.exits.empty()) find_border(region);
  const bool first_time = region.replays == 0;
  for (uint32_t slot = 0; slot < region.plan->slots; ++slot) {
    std::string why;
    CaptureRecords records;
    std::unique_ptr<device::Recording> recording = capture_slot(region, slot, records, why);
    if (!recording) return leave_to_streams(region, why);
    region.recordings.push_back(std::move(recording));
    for (RegionRun::Exit& exit : region.exits) {
      memory::Block& block = exit.output->ring->block(slot);
      exit.recorded.resize(region.plan->slots);
      exit.recorded[slot] = records.of(block);
      if (first_time && exit.recorded[slot].header.present)
        *block.record = exit.recorded[slot]; // what the regions behind this one are told when they begin
    }
  }
  learn_times(region);
}

void measure_empty_span(RegionRun& region) {
  if (region.recordings.empty()) return;
  StepRun& first = *region.steps[0];
  device::Device& device = *first.device;
  std::vector<int64_t> took;
  size_t spans = 0;
  const auto tell = [](void* context, int64_t ns) { static_cast<std::vector<int64_t>*>(context)->push_back(ns); };
  device.hold(*first.stream);
  while (spans < kEmptySpans && device.begin_span(*first.stream)) {
    device.end_span(*first.stream, {tell, &took});
    ++spans;
  }
  device.let_go(*first.stream);
  const device::Fence fence = device.signal(*first.stream);
  while (!fence.done())
    if (!device.force(fence)) std::this_thread::yield();
  for (; took.size() < spans && device.status().ok(); std::this_thread::yield()) device.collect_spans();
  if (took.empty()) return;
  const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
  std::nth_element(took.begin(), middle, took.end());
  for (StepRun* step : region.steps) step->empty_span_ns = *middle;
}

void warm_up(RegionRun& region, uint64_t ordinal) {
  if (region.recordings.empty()) return;
  const StepRun& first = *region.steps[0];
  first.device->warm_up(*first.stream, *region.recordings[ordinal % region.plan->slots]);
}

StepResult run_captured(RegionRun& region, uint64_t ordinal) {
  StepRun& first = *region.steps[0];
  if (!first.device->has_room(*first.stream)) return StepResult::waiting;
  for (const RegionRun::Entry& entry : region.entries) {
    if (entry.input->producer && !entry.input->producer->settled(ordinal)) return StepResult::waiting;
    const Slot& slot = entry.input->output->at(ordinal);
    if (slot.unknown && !slot.fence.done()) return StepResult::waiting;
  }
  for (const StepRun* step : region.steps)
    if (!step->after.empty() && !issued(*step, ordinal)) return StepResult::waiting;
  const RunState& run = *first.run;
  const bool to_restart = std::any_of(region.steps.begin(), region.steps.end(),
                                      [](const StepRun* step) { return step->restart_asked.load(); });
  const bool changed = run.changes_admitted.load(std::memory_order_acquire) != region.changes_seen;
  if ((changed || to_restart) && !capture_again(region, ordinal)) return StepResult::waiting;
  const bool bodies_one_by_one = run.options.measure_bodies && (first.pace->info(ordinal).index & kTimedMask) == 0;
  if (!first.region) return run_enqueued(first, ordinal); // it could not be captured again
  if (!bodies_one_by_one && !run.failing.load(std::memory_order_relaxed) && as_captured(region, ordinal)) {
    launch(region, ordinal);
    return StepResult::settled;
  }
  for (StepRun* step : region.steps)
    if (!issued(*step, ordinal)) return StepResult::waiting;
  for (size_t s = 0; s < region.steps.size(); ++s) {
    if (enter(*region.steps[s])) continue;
    while (s-- > 0) leave(*region.steps[s]);
    return StepResult::waiting;
  }
  // Held: what could be captured does not wait for its stream while it is called.
  const Timing timing = bodies_one_by_one ? Timing::held : Timing::as_it_comes;
  for (StepRun* step : region.steps) {
    call_body(*step, ordinal, timing);
    leave(*step);
  }
  ++region.streamed;
  return StepResult::settled;
}

StepResult run_enqueued(StepRun& step, uint64_t ordinal) {
  if (!step.device->has_room(*step.stream) || !issued(step, ordinal) || !change_live(step, ordinal))
    return StepResult::waiting;
  if (step.restart_asked.load()) { // looked at once: finish() may ask for it at any time
    if (!at_rest(step)) return StepResult::waiting;
    restart_if_asked(step, step.pace->info(ordinal).index);
  }
  if (!enter(step)) return StepResult::waiting;
  call_body(step, ordinal, Timing::as_it_comes);
  leave(step);
  return StepResult::settled;
}

namespace {

// While a body that keeps the host busy is called, another thread submits to its device.
class OthersSubmit {
 public:
  explicit OthersSubmit(const SegmentRun& segment) : submitting_(segment.plan->heavy ? segment.submitting : nullptr) {
    if (submitting_) submitting_->unlock();
  }
  ~OthersSubmit() {
    if (submitting_) submitting_->lock();
  }
  OthersSubmit(const OthersSubmit&) = delete;

 private:
  std::mutex* const submitting_;
};

// Of a body on a held stream: without what a span takes that has nothing in it.
device::Span body_span_of(StepRun& step) {
  const auto tell = [](void* context, int64_t took_ns) {
    auto& of = *static_cast<StepRun*>(context);
    of.times.add(took_ns - of.empty_span_ns);
  };
  return {tell, &step};
}

// What a body that enqueued said of its outputs is so, but that what is written to the host may be lost.
void settle_outputs(StepRun& step, const BodyCall& body, uint64_t ordinal) {
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    OutputRun& output = *step.outputs[o];
    Slot& slot = output.at(ordinal);
    slot.unknown = false;
    if (body.outputs[o].state != MR_OUTPUT_SILENT) {
      if (step.run->plan.in_host_memory(output.plan->domain)) await_host_block(slot);
      continue;
    }
    if (is_for_finish(step, output) && !body.failed) {
      slot.unknown = true;
      continue;
    }
    if (output.plan->owns) release(slot);
    slot = Slot{};
    slot.cause = body.failed ? Cause::error : Cause::silent;
  }
}

void call_body(StepRun& step, uint64_t ordinal, Timing timing) {
  BodyCall& body = body_of(step, ordinal);
  Cause cause = Cause::input;
  if (!fix_body(step, body, ordinal, cause)) {
    note_called(step, ordinal, false);
    settle_empty(step, ordinal, cause);
    return;
  }
  choose_blocks(step, body, ordinal);
  for (size_t i = 0; i < body.inputs.size(); ++i) body.inputs[i] = body.absent[i] ? mr_input{} : body.frozen[i];
  body.failed = false;
  step.device->set_tick(*step.stream, numbers_of(body.info)); // a kernel of its own, and none of the body's
  if (timing == Timing::held) step.device->hold(*step.stream);
  const bool timed = (body.info.index & kTimedMask) == 0 && step.device->begin_span(*step.stream);
  step.segment->inside.store(&step, std::memory_order_relaxed);
  {
    const OthersSubmit meanwhile(*step.segment);
    step.device->run(*step.stream, {&enqueue_body, &body, step.handler->name.c_str()});
  }
  if (timed) step.device->end_span(*step.stream, timing == Timing::held ? body_span_of(step) : span_of(step.times));
  if (timing == Timing::held) step.device->let_go(*step.stream);
  if (const std::string left = step.device->take_body_error(*step.stream); !left.empty() && !body.failed) {
    step.instance->set_error(left);
    fail_body(step, body);
  }
  ++step.calls;
  if (body.failed) mind_body_error(step, body.info.index);
  const device::Fence fence = step.device->signal(*step.stream);
  leave_fence(step, ordinal, fence);
  if (lost(fence)) step.run->watch_device(step.plan->domain);
  settle_outputs(step, body, ordinal);
  note_called(step, ordinal, body.to_finish);
  stamp(step, ordinal);
}

} // namespace

} // namespace millrace::exec
