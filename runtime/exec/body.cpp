// A body on a device, from its submission to its results (semantics.md 4.1, 4.4).
//
// A device is given a body in one of two ways. Either the body runs by itself when the device reaches it, and the
// presence of its outputs is known at its fence: handlers written for the host, on sim. Or the host calls the body when
// it is submitted, and the body enqueues its work: what it says of its outputs is known at once, and their bytes are
// there at the fence (cuda, and sim if it enqueues). OnDevice::enqueuing tells the two apart. All else is one path.
#include <algorithm>
#include <cstring>

#include "device/device.h"
#include "exec/body.h"
#include "exec/channel.h"
#include "exec/check_call.h"
#include "exec/failure.h"
#include "exec/finish_step.h"
#include "exec/firing.h"
#include "exec/handler_state.h"
#include "exec/region.h"
#include "exec/run_options.h"
#include "exec/settle.h"
#include "exec/sink_latency.h"
#include "exec/tap_point.h"
#include "exec/under_way.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// Copies the input into an output that repeats it, where the body works. For records the copy includes their count,
// which only the device may know.
void repeat_input(const BodyRun& step, BodyCall& body, size_t o, const mr_input& input) {
  mr_output& output = body.outputs[o];
  output = body.given[o];
  if (!input.value) return;
  *output.value = *input.value;
  output.value->header.extent_bytes = std::min(input.value->header.extent_bytes, output.capacity);
  if (step.on.enqueuing) {
    copy_value(step.on, output.data, input.data, *output.value);
  } else if (output.value->header.extent_bytes > 0) {
    std::memcpy(output.data, input.data, output.value->header.extent_bytes);
  }
  output.state = MR_OUTPUT_OWN;
}

void fail_body(BodyRun& step, BodyCall& body) {
  body.failed = true;
  body.to_finish = false;
  fail_outputs(step, body.outputs, body.inputs);
}

void begin_body(BodyCall& body) {
  for (mr_output& output : body.outputs) output.state = MR_OUTPUT_SILENT;
  body.given = body.outputs; // same size: no allocation
  body.failed = false;
}

// Checks what the body returned before any step acts on it.
void end_body(BodyRun& step, BodyCall& body, mr_status status) {
  status = status_of_call(step, status, body.outputs, body.inputs);
  if (status == MR_END) step.run->stop();
  body.to_finish = status == MR_OK;
  status < 0 ? fail_body(step, body) : mark_stream(step, body.tick.stream, body.outputs);
}

void repeat_inputs(BodyRun& step, BodyCall& body) {
  for (size_t o = 0; o < body.outputs.size(); ++o)
    if (body.outputs[o].state == MR_OUTPUT_FORWARDED) repeat_input(step, body, o, body.inputs[body.outputs[o].source]);
}

// ---- a body that runs by itself

// Shows the body's outputs to taps. It runs on the device's time, before anything later on the stream. It reads by the
// addresses that bodies see, since the host may not read there.
void show_to_taps(const BodyRun& step, const BodyCall& body) {
  for (size_t o = 0; o < body.outputs.size(); ++o) {
    const mr_output& made = body.outputs[o];
    const bool is_there = made.state != MR_OUTPUT_SILENT;
    if (TapPoint* const point = step.outputs[o]->tapped.load(std::memory_order_acquire)) [[unlikely]]
      point->show(body.info, is_there ? made.value : nullptr, made.data);
  }
}

// True if the body fires, now that presence is known.
bool fires_now(BodyRun& step, BodyCall& body) {
  bool fires = !body.silent, called = !step.plan->called()->on_value;
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const memory::Block* block = body.input_blocks[i];
    const bool late = block && !block->present.load(std::memory_order_relaxed);
    if (late && !body.absent[i]) ++step.inputs[i].totals->absent_at_fence;
    body.inputs[i] = body.absent[i] || late ? mr_input{} : body.frozen[i];
    if (!body.inputs[i].value && step.inputs[i].required) fires = false;
    called = called || (body.inputs[i].value && step.inputs[i].calls);
  }
  return fires && called;
}

mr_status call_by_itself(BodyRun& step, BodyCall& body) {
  RunState& run = *step.run;
  ++step.life->other_calls;
  const int64_t begin = run.trace_now(), begun_ns = run.now_ns();
  const plugin::UnderWayScope here({&name_call_outside, &step});
  step.tick_outside.store(body.info.index, std::memory_order_relaxed);
  const mr_status status = run_on_host(step, &body.tick);
  step.tick_outside.store(HandlerRun::kNoCall, std::memory_order_relaxed);
  step.times.add(run.is_virtual ? body.cost_ns : run.now_ns() - begun_ns);
  // In virtual time a body runs when its time is over.
  run.trace_on_device(step, body.info, TraceKind::call, begin - body.cost_ns, run.trace_now());
  record_sink_latency(step, body.context.ordinal);
  return status;
}

// ---- a body that enqueues

// Lets other threads submit to the device while a body that keeps the host busy is called.
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

// The time of a body on a held stream. An empty span takes time too, which is not the body's.
device::Span body_span_of(BodyRun& step) {
  const auto tell = [](void* context, int64_t took_ns) {
    auto& of = *static_cast<BodyRun*>(context);
    of.times.add(took_ns - of.empty_span_ns);
  };
  return {tell, &step};
}

void call_now(BodyRun& step, BodyCall& body, Timing timing) {
  device::Enqueuing& device = *step.on.enqueuing;
  device::Stream& stream = *step.on.stream;
  for (size_t i = 0; i < body.inputs.size(); ++i) body.inputs[i] = body.absent[i] ? mr_input{} : body.frozen[i];
  device.set_tick(stream, numbers_of(body.info)); // enqueues a kernel of its own, outside the body's span
  if (timing == Timing::held) device.pause(stream);
  const bool timed = (body.info.index & kTimedMask) == 0 && device.begin_span(stream);
  step.segment->inside.store(&step, std::memory_order_relaxed);
  {
    const OthersSubmit meanwhile(*step.segment);
    device.call(stream, {&enqueue_body, &body, step.handler->name.c_str(), body.cost_ns, &body.accesses});
  }
  if (timed) device.end_span(stream, timing == Timing::held ? body_span_of(step) : span_of(step.times));
  if (timing == Timing::held) device.resume(stream);
  if (const std::string left = device.take_body_error(stream); !left.empty() && !body.failed) {
    step.instance->set_error(left);
    fail_body(step, body);
    repeat_inputs(step, body);
  }
  ++step.life->other_calls;
  if (body.failed) apply_on_error(step, body.info.index);
}

// Outputs are final once an enqueuing body returns, except values in host memory: those are there only if the device
// has not failed by the fence.
void settle_known(BodyRun& step, const BodyCall& body, uint64_t ordinal) {
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    OutputRun& output = *step.outputs[o];
    Slot& slot = output.at(ordinal);
    if (body.outputs[o].state != MR_OUTPUT_SILENT) {
      slot.presence_pending = false;
      if (output.in_host_memory) await_host_block(slot);
    } else if (!is_for_finish(step, output) || body.failed) {
      if (output.plan->owns) release(slot);
      settle(output, ordinal, nothing(body.failed ? Cause::error : Cause::silent));
    }
  }
}

} // namespace

void simulate_body(void* context) {
  BodyCall& body = *static_cast<BodyCall*>(context);
  BodyRun& step = static_cast<BodyRun&>(*body.context.step);
  begin_body(body);
  mr_status status = MR_OK;
  if (fires_now(step, body) && is_up(step)) {
    clear_state_if_due(step);
    status = call_by_itself(step, body);
  }
  end_body(step, body, status);
  if (body.failed) apply_on_error(step, body.info.index);
  repeat_inputs(step, body);
  show_to_taps(step, body);
  for (size_t o = 0; o < body.outputs.size(); ++o)
    body.output_blocks[o]->present.store(body.outputs[o].state != MR_OUTPUT_SILENT, std::memory_order_relaxed);
}

void enqueue_body(void* context) {
  BodyCall& body = *static_cast<BodyCall*>(context);
  BodyRun& step = static_cast<BodyRun&>(*body.context.step);
  body.tick.native_stream = step.on.stream->native;
  body.tick.device_tick = step.on.stream->tick;
  begin_body(body);
  end_body(step, body, step.process_cuda(step.self, &body.tick));
  repeat_inputs(step, body);
}

void settle_failed(BodyRun& step, uint64_t ordinal) {
  if (step.reads_queue) count_lost(step, ordinal, Cause::input);
  record_called(step, ordinal, false);
  settle_empty(step, ordinal, Cause::error);
}

void submit_body(BodyRun& step, uint64_t ordinal, Timing timing) {
  if (step.on.device->failed()) return settle_failed(step, ordinal);
  BodyCall& body = body_of(step, ordinal);
  Cause cause = Cause::input;
  bool fires = fix_body(step, body, ordinal, cause);
  if (fires && step.on.enqueuing && !is_up(step)) {
    fires = false;
    cause = Cause::restart;
  }
  if (!fires) {
    record_called(step, ordinal, false);
    settle_empty(step, ordinal, cause);
    return;
  }
  choose_blocks(step, body, ordinal);
  body.cost_ns = step.run->options.cost_ns ? step.run->options.cost_ns(step.handler->name, body.info.index) : 0;
  if (step.on.enqueuing) {
    clear_state_if_due(step);
    call_now(step, body, timing);
  } else {
    step.on.device->run(*step.on.stream,
                        {&simulate_body, &body, step.handler->name.c_str(), body.cost_ns, &body.accesses});
  }
  leave_fence(step, ordinal, step.on.device->signal(*step.on.stream));
  if (step.on.enqueuing) { // else the device has yet to run the body
    settle_known(step, body, ordinal);
    record_called(step, ordinal, body.to_finish);
  }
  stamp(step, ordinal);
}

StepResult run_alone(BodyRun& step, uint64_t ordinal) {
  if (!step.on.device->has_room(*step.on.stream) || !issued(step, ordinal) || !change_live(step, ordinal) ||
      !restart_where_asked(step) || !enter(step))
    return StepResult::waiting;
  submit_body(step, ordinal, Timing::as_it_comes);
  leave(step);
  return StepResult::settled;
}

StepResult BodyRun::advance(uint64_t ordinal) {
  if (!on.region) return run_alone(*this, ordinal);
  // The first of the region submits all; the others find themselves settled.
  return on.region->steps[0] == this ? run_region(*on.region, ordinal) : StepResult::settled;
}

bool change_live(BodyRun& step, uint64_t ordinal) {
  if (step.run->changes_admitted.load(std::memory_order_acquire) == step.life->changes_seen) return true;
  if (!at_rest(step)) return false; // a body has the parameters of its issue (2.7), and earlier ones may still run
  apply_changes(step, change_index(step, ordinal));
  return true;
}

void leave_fence(StepRun& step, uint64_t ordinal, const device::Fence& fence) {
  step.run->submissions[step.plan->domain]->record(step, ordinal, fence);
  step.run->await_submitted(step, ordinal, fence);
  step.on.fences[ordinal & step.pace->mask] = fence;
  step.on.last_fence = fence;
  step.segment->fences[ordinal & step.pace->mask] = fence;
  for (OutputRun* output : step.outputs) output->at(ordinal).fence = fence;
  if (lost(fence)) step.run->watch_device(step.plan->domain);
}

void record_called(BodyRun& step, uint64_t ordinal, bool called) {
  if (!step.finisher) return;
  step.finish_due[ordinal & step.pace->mask] = called;
  step.called_below = ordinal + 1;
}

void wait_for(device::Device& device, device::Stream& stream, const device::Fence& fence) {
  if (fence.word && fence.word != &stream.completed) device.wait(stream, fence);
}

void copy_value(const OnDevice& on, uint8_t* to, const uint8_t* from, const mr_value& value) {
  const uint64_t head = value.header.kind == MR_KIND_RECORDS ? sizeof(mr_value) : 0;
  on.device->copy(*on.stream, bytes_at(to) - head, bytes_at(from) - head, head + value.header.extent_bytes);
}

device::Span span_of(Histogram& times) {
  return {[](void* context, int64_t took_ns) { static_cast<Histogram*>(context)->add(took_ns); }, &times};
}

} // namespace millrace::exec
