// Calls finish() of handlers whose bodies enqueue: a step on the host that runs once the fence of the body's tick is
// done (semantics.md 4.4).
//
// finish() gets the inputs and outputs of the body: records, times and counts as the host knows them, and bytes where
// they are. The bytes are on a device, except those of outputs that are declared `cpu`. finish() may change and publish
// only the `cpu` outputs; readers of the others have begun long before. Meanwhile the body is called or launched for
// later ticks.
#include "exec/finish_step.h"

#include "exec/check_call.h"
#include "exec/failure.h"
#include "exec/firing.h"
#include "exec/group.h"
#include "exec/settle.h"
#include "exec/sink_latency.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

size_t body_inputs(const FinishRun& step) { return step.body->inputs.size(); }

// False if a required input that the body had is gone, because a device has failed meanwhile.
bool gather(FinishRun& step, uint64_t ordinal) {
  Slot room;
  bool all_there = true;
  for (size_t i = 0; i < body_inputs(step); ++i) {
    const Slot* slot = read(step, step.inputs[i], ordinal, room);
    step.raw_inputs[i] = slot ? mr_input{slot->value, slot->data} : mr_input{};
    all_there = all_there && (slot || !step.body->inputs[i].required);
  }
  for (size_t o = 0; o < step.raw_outputs.size(); ++o) {
    OutputRun& output = *step.body->outputs[o];
    const Slot& slot = output.at(ordinal);
    const bool there = present(*step.run, slot);
    mr_output& raw = step.raw_outputs[o];
    raw = {};
    raw.state = there ? MR_OUTPUT_OWN : MR_OUTPUT_SILENT;
    if (!slot.block) continue;
    raw.value = slot.block->record;
    raw.data = slot.block->data;
    raw.capacity = output.ring->capacity();
    raw.token = reinterpret_cast<uint64_t>(slot.block);
  }
  return all_there;
}

mr_status call_finish(FinishRun& step, uint64_t ordinal) {
  BodyRun& body = *step.body;
  const RunState& run = *step.run;
  const mr_tick_info& info = step.pace->info(ordinal);
  SegmentRun& segment = *step.segment;
  step.context = {step.body, ordinal, nullptr, nullptr, true};
  step.tick.info = &info;
  if (step.pace->group) step.tick.stream = step.pace->group->item(ordinal).give->give->stream;
  segment.inside.store(&body, std::memory_order_relaxed); // the monitor applies the body's budget
  const int64_t begin_ns = run.now_ns(), begin = run.trace_now();
  body.in_finish.store(true, std::memory_order_relaxed);
  mr_status status = body.finish(body.self, &step.tick);
  body.in_finish.store(false, std::memory_order_relaxed);
  if (!run.is_virtual) step.times.add(run.now_ns() - begin_ns);
  if (segment.trace) segment.trace->add({begin, run.trace_now(), info.trace_id, step.index, TraceKind::call});
  segment.traced_until = run.trace_now();
  for (const mr_output& output : step.raw_outputs) {
    if (status < 0 || output.state != MR_OUTPUT_FORWARDED) continue;
    body.instance->set_error("finish cannot repeat an input: its bytes are on a device");
    status = MR_ERROR;
  }
  return status_of_call(*step.body, status, step.raw_outputs, {});
}

void settle_called(FinishRun& step, uint64_t ordinal, mr_status status) {
  for (OutputRun* output : step.outputs) {
    const mr_output& made = step.raw_outputs[static_cast<size_t>(output->plan->forwards) - body_inputs(step)];
    const bool there = status >= 0 && made.state != MR_OUTPUT_SILENT;
    if (there) mark_stream(*step.body, step.tick.stream, {&made, 1});
    settle(*output, ordinal, there ? value_of(made) : nothing(status < 0 ? Cause::error : Cause::silent));
  }
}

// Settles a tick on which the body did not run, or whose results must not be seen.
void settle_uncalled(FinishRun& step, uint64_t ordinal) {
  Slot room;
  for (size_t i = 0; i < body_inputs(step); ++i)
    if (step.inputs[i].repeat_last) read(step, step.inputs[i], ordinal, room); // each tick may bring a new last value
  for (OutputRun* output : step.outputs) {
    const InputRun& made = step.inputs[static_cast<size_t>(output->plan->forwards)];
    const Slot& from = made.output->at(ordinal);
    settle(*output, ordinal, nothing(from.value ? Cause::failed : from.cause));
  }
}

StepResult pass(FinishRun& step, uint64_t ordinal) {
  step.passed.store(ordinal + 1, std::memory_order_release);
  stamp(step, ordinal);
  return StepResult::settled;
}

} // namespace

StepResult FinishRun::advance(uint64_t ordinal) {
  if (!body->shared->settled(ordinal)) return StepResult::waiting;
  const bool called = body->finish_due[ordinal & pace->mask];
  const device::Fence& fence = body->on.fences[ordinal & pace->mask];
  if (called && !fence.done()) return StepResult::waiting;
  const mr_tick_info& info = pace->info(ordinal);
  if (called && lost(fence)) run->watch_device(body->plan->domain);
  if (!called || lost(fence) || any_lost(*run) || later_ticks_void(*run, info)) {
    settle_uncalled(*this, ordinal);
    return pass(*this, ordinal);
  }
  if (!enter(*body)) return StepResult::waiting;
  if (!gather(*this, ordinal)) {
    leave(*body);
    settle_uncalled(*this, ordinal);
    return pass(*this, ordinal);
  }
  const mr_status status = call_finish(*this, ordinal);
  if (status == MR_END) run->stop();
  const bool leaves = run->stopping.load(std::memory_order_relaxed) || pace->ending.load(std::memory_order_relaxed);
  if (status < 0 && !(leaves && status == MR_INTERRUPTED)) apply_on_error(*body, info.index);
  leave(*body);
  settle_called(*this, ordinal, status);
  record_sink_latency(*body, ordinal);
  return pass(*this, ordinal);
}

bool at_rest(const BodyRun& body) {
  if (!body.on.last_fence.done()) return false;
  return !body.finisher || body.finisher->passed.load(std::memory_order_acquire) >= body.called_below;
}

bool enter(BodyRun& body) { return !body.finisher || !body.entered.exchange(true, std::memory_order_acquire); }

void leave(BodyRun& body) {
  if (!body.finisher) return;
  body.entered.store(false, std::memory_order_release);
  body.run->notify(*body.pace); // a thread that was kept out tries again
}

} // namespace millrace::exec
