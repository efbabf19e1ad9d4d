// Fires a handler on one tick: checks that its inputs are there, decides whether it fires, calls it, and settles its
// outputs (semantics.md 2.1, 2.2, 2.4, 2.6).
//
// Five words decide how a call is made:
//
//   plain     of a step     it runs on the host and has no delays, fences, waits for readers, or holders
//   short     of a handler  its median call is below kShortCallNs: only careful ticks read the clock around it
//   tiny      of a handler  its median call is below kTinyCallNs: a row of such calls shares one look at the clock
//   flat      of a step     plain and short, all inputs required, and nothing else has to be checked on each call
//   careful   of a tick     it is timed, or a tap, a live change or a failure has to be looked at
//
//   a flat step on a tick that is not careful    run_flat(); if an input is missing, it does nothing and advance() runs
//   all others                                   advance(): waits for the inputs, then call() with all its checks
#include "exec/firing.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "exec/channel.h"
#include "exec/check_call.h"
#include "exec/copy_step.h"
#include "exec/failure.h"
#include "exec/finish_step.h"
#include "exec/handler_state.h"
#include "exec/param_values.h"
#include "exec/pending.h"
#include "exec/run_log.h"
#include "exec/run_options.h"
#include "exec/settle.h"
#include "exec/sink_latency.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// The first kTimedAtFirst calls of a handler are all timed. If their median is below kShortCallNs, two clock reads
// would show, so from then on only one tick in 64 is timed.
constexpr uint64_t kTimedAtFirst = 16;
constexpr int64_t kShortCallNs = 2'000;
// A call that is shorter than this, two clock reads included, would take twice as long if it read the clock for its own
// span in the trace.
constexpr int64_t kTinyCallNs = 100;

} // namespace

bool ready(const HandlerRun& step, uint64_t ordinal) {
  for (const InputRun& input : step.inputs) {
    if (!input.output) continue;
    const auto [back, at] = look_back(step, input, ordinal);
    if (back != Back::there) continue;
    if (input.producer && !input.producer->settled(at)) return false;
    if (input.may_be_late && !input.output->at(at).fence.done()) return false;
  }
  for (const StepStamps* before : step.after)
    if (before && !before->settled(ordinal)) return false;
  for (const StepRun* before : step.after_on_device)
    if (!before->on.fences[ordinal & step.pace->mask].done()) return false;
  return true;
}

void trace_call(HandlerRun& step, int64_t begin, int64_t end) {
  SegmentRun& segment = *step.segment;
  TraceRing* const ring = step.trace ? step.trace : segment.trace;
  if (!ring) return;
  ring->add({begin, end, step.tick.info->trace_id, step.index, step.trace ? TraceKind::read : TraceKind::call});
  if (!step.trace) segment.traced_until = end;
}

void sample(HandlerRun& step, int64_t ns) {
  step.times.add(ns);
  if (step.life->calls() != kTimedAtFirst || step.times.quantile_ns(0.5) >= kShortCallNs) return;
  step.short_calls = true;
  step.tiny_calls = step.times.quantile_ns(0.5) < kTinyCallNs;
  flatten(step);
}

namespace {

// Traces a call that has returned. It began where the last one ended.
void trace_flat_call(HandlerRun& step) {
  SegmentRun& segment = *step.segment;
  if (!step.tiny_calls) return trace_call(step, segment.traced_until, trace_ticks());
  segment.tiny_steps[segment.tiny_calls++] = step.index;
  if (segment.tiny_calls == kTinyCallsMax) trace_tiny_calls(segment);
}

Cause cause_of(mr_status status) { return status == MR_ERROR ? Cause::error : Cause::silent; }

// Counts the values that queues gave for this tick: delivered if the handler is called, else lost.
void deliver_queued(HandlerRun& step, uint64_t ordinal, bool called) {
  if (!called) return count_lost(step, ordinal, Cause::input);
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (step.inputs[i].queue && step.raw_inputs[i].value) ++step.inputs[i].totals->delivered;
}

// Fills raw_inputs. False if the handler does not fire; `cause` says why.
bool gather(HandlerRun& step, uint64_t ordinal, Cause& cause) {
  bool fires = true, called = !step.plan->called()->on_value, over = false;
  Slot room;
  step.tick.ended = 0;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    InputRun& input = step.inputs[i];
    const Slot* slot = read(step, input, ordinal, room);
    step.raw_inputs[i] = slot ? mr_input{slot->value, slot->data} : mr_input{};
    if (slot) {
      if (!input.queue) ++input.totals->delivered;
      called = called || input.calls;
      if (!input.kept.empty()) keep(input, *slot);
      continue;
    }
    if (!input.output) continue;
    cause = why_empty(step, input, ordinal);
    ++input.totals->empty[static_cast<size_t>(cause)];
    if (cause == Cause::end) step.tick.ended |= bit_of_input(i);
    if (input.required) {
      fires = false;
      over = over || cause == Cause::end;
    }
  }
  if (!fires || !called) cause = over ? Cause::end : Cause::input; // its outputs pass the end on
  if (step.reads_queue) deliver_queued(step, ordinal, fires && called);
  return fires && called;
}

// Settles a tick on which the handler is not called. The cause is `error` if the handler had to be drained and failed.
StepResult settle_without_call(HandlerRun& step, uint64_t ordinal, Cause cause) {
  if (!drain_in_gap(step, ordinal, Fires::no)) cause = Cause::error;
  settle_empty(step, ordinal, cause);
  return StepResult::settled;
}

// Before a call: drains a handler that has owed a firing for too many ticks, and resets one that was drained. False if
// the handler fails at either.
bool ready_again(HandlerRun& step, uint64_t ordinal) {
  if (!drain_in_gap(step, ordinal, Fires::yes)) return false;
  if (!step.life->drained) return true;
  step.life->drained = false;
  if (reset_handler(step) == MR_OK) return true;
  fail_outside_process(step, ordinal);
  return false;
}

} // namespace

bool passes_over(HandlerRun& step, uint64_t ordinal) {
  const mr_tick_info& info = step.pace->info(ordinal);
  if (step.every > 1 && info.index % step.every != 0) {
    Slot room;
    for (InputRun& input : step.inputs)
      if (input.repeat_last) read(step, input, ordinal, room); // each tick may bring a new last value
    if (step.reads_queue) count_lost(step, ordinal, Cause::every);
    settle_without_call(step, ordinal, Cause::every);
    return true;
  }
  if (later_ticks_void(*step.run, info)) {
    if (!step.deferred.empty()) drain_step(step); // it is not called any more: what it owes comes now or never
    settle_empty(step, ordinal, Cause::failed);
    return true;
  }
  Cause cause = Cause::silent;
  if (!gather(step, ordinal, cause)) {
    settle_without_call(step, ordinal, cause);
    return true;
  }
  if (!step.deferred.empty() && !ready_again(step, ordinal)) {
    settle_empty(step, ordinal, Cause::error);
    return true;
  }
  if (is_up(step)) return false;
  settle_empty(step, ordinal, Cause::restart);
  return true;
}

namespace {

StepResult run_handler(HandlerRun& step, uint64_t ordinal) {
  if (std::exchange(step.calling, false)) { // its virtual time has passed
    settle_call(step, ordinal);
    return StepResult::settled;
  }
  if ((!step.plain || step.fed_by_others) && !ready(step, ordinal)) return StepResult::waiting;
  const mr_tick_info& info = step.pace->info(ordinal);
  RunState& run = *step.run;
  if (owes_too_many(step)) {
    if (!step.pace->clock->plan->realtime()) return StepResult::waiting;
    settle_empty(step, ordinal, Cause::busy);
    return StepResult::settled;
  }
  if (passes_over(step, ordinal)) return StepResult::settled;
  step.context.ordinal = ordinal;
  step.call_status = call(step, info);
  if (step.call_status == MR_END) run.stop();
  if (!step.deferred.empty()) check_debt(step, ordinal);
  if (run.is_virtual) {
    const int64_t cost = run.options.cost_ns ? run.options.cost_ns(step.handler->name, info.index) : 0;
    trace_call(step, run.now_ns(), run.now_ns() + std::max<int64_t>(cost, 0));
    if (cost > 0) {
      step.segment->busy_until_ns = run.now_ns() + cost;
      step.times.add(cost);
      step.calling = true;
      return StepResult::calling;
    }
  }
  settle_call(step, ordinal);
  return StepResult::settled;
}

} // namespace

void settle_call(HandlerRun& step, uint64_t ordinal) {
  const mr_status status = step.call_status;
  if (status == MR_PENDING) return; // publish() settles it
  settle_outputs(step, ordinal, step.raw_outputs, step.raw_inputs, cause_of(status));
  stamp(step, ordinal);
}

void trace_tiny_calls(SegmentRun& segment) {
  if (segment.tiny_calls == 0) return;
  const int64_t now = trace_ticks();
  segment.trace->add_row({segment.traced_until, now, segment.pace->info(segment.ordinal).trace_id, 0, TraceKind::call},
                         segment.tiny_steps.data(), segment.tiny_calls);
  segment.tiny_calls = 0;
  segment.traced_until = now;
}

void fail_call(HandlerRun& step, const mr_tick_info& info) {
  void_outputs(step, step.raw_outputs);
  if (!step.deferred.empty())
    give_up_pending(step, step.handler->on_error == graph::OnError::restart, step.context.ordinal);
  apply_on_error(step, info.index);
  fail_outputs(step, step.raw_outputs, step.raw_inputs);
}

void fail_outside_process(HandlerRun& step, uint64_t ordinal) {
  for (mr_output& output : step.raw_outputs) output.state = MR_OUTPUT_SILENT;
  step.context.ordinal = ordinal; // not the last call's: a firing that it deferred is still owed
  fail_call(step, step.pace->info(ordinal));
}

uint64_t change_index(const StepRun& step, uint64_t ordinal) {
  return step.pace->group ? ordinal / step.pace->plan->rows : step.pace->info(ordinal).index;
}

void apply_changes(HandlerRun& step, uint64_t index) {
  RunState& run = *step.run;
  const std::lock_guard lock(run.changes_mutex);
  for (const RunState::Change& change : run.changes) {
    const bool is_mine = &run.planned.plan.handlers[change.handler] == step.handler; // else perhaps of another clock
    if (!is_mine || change.number < step.life->changes_seen) continue;
    step.life->changes_seen = change.number;
    if (change.at_index > index) return;         // those after it are no earlier
    if (RunState::is_of_group(change)) continue; // its group has taken it in
    try {
      step.instance->set_param(change.param, change.text, {});
      confirm_value(run, change);
    } catch (const Failure& refused) { // its declaration allows it, but the handler's own type cannot hold it
      restore_value(run, change);
      if (run.options.on_message)
        run.options.on_message(std::string("warning: a change was refused: ") + refused.what());
    }
  }
  step.life->changes_seen = run.changes_admitted.load(std::memory_order_relaxed);
}

void stamp(StepRun& step, uint64_t ordinal) {
  if (!step.shared->wanted) return;
  step.shared->stamp(ordinal).store(ordinal + 1, std::memory_order_release);
  step.run->notify(*step.segment);
}

void flatten(HandlerRun& step) {
  // A handler that restarts or is bypassed must have its state checked on every call, so it goes the full way.
  const bool simple = step.handler->on_error == graph::OnError::fail || step.handler->on_error == graph::OnError::skip;
  step.flat = step.plain && step.short_calls && step.every == 1 && !step.run->is_virtual && step.deferred.empty() &&
              !step.finish && simple;
  step.flat_inputs.clear();
  step.flat_outputs.clear();
  for (InputRun& input : step.inputs) {
    if (!input.output || !input.required) step.flat = false;
    if (input.output) step.flat_inputs.push_back({input.output->cells.get(), input.output->mask, input.producer, -1});
  }
  for (OutputRun* output : step.outputs)
    step.flat_outputs.push_back({output->cells.get(), output->mask, nullptr, output->plan->forwards});
}

namespace {

// Checks what the call said, and handles a failed call.
mr_status end_call(HandlerRun& step, const mr_tick_info& info, mr_status status) {
  status = status_of_call(step, status, step.raw_outputs, step.raw_inputs);
  if (status >= 0) [[likely]] {
    mark_stream(step, step.tick.stream, step.raw_outputs);
    return status;
  }
  const bool leaves =
      step.run->stopping.load(std::memory_order_relaxed) || step.pace->ending.load(std::memory_order_relaxed);
  if (leaves && status == MR_INTERRUPTED) {
    void_outputs(step, step.raw_outputs);
    return MR_END;
  }
  fail_call(step, info);
  return MR_ERROR;
}

// True if nothing has to be checked: every output is silent, or repeats an input that was checked where it was made.
bool says_nothing_new(const HandlerRun& step, mr_status status) {
  bool nothing = status == MR_OK;
  for (size_t o = 0; o < step.flat_outputs.size(); ++o) {
    const mr_output& output = step.raw_outputs[o];
    const bool repeats =
        output.state == MR_OUTPUT_FORWARDED && static_cast<int32_t>(output.source) == step.flat_outputs[o].forwards;
    nothing = nothing && (repeats || output.state == MR_OUTPUT_SILENT);
  }
  return nothing;
}

} // namespace

bool run_flat(HandlerRun& step, uint64_t ordinal) {
  mr_input* const inputs = step.raw_inputs.data();
  mr_output* const outputs = step.raw_outputs.data();
  for (size_t i = 0; i < step.flat_inputs.size(); ++i) {
    const FlatPort& port = step.flat_inputs[i];
    if (port.producer && !port.producer->settled(ordinal)) return false;
    const Slot& slot = port.cells[ordinal & port.mask].slot;
    if (!slot.value) return false;
    inputs[i] = {slot.value, slot.data};
  }
  for (size_t o = 0; o < step.flat_outputs.size(); ++o) outputs[o].state = MR_OUTPUT_SILENT;
  step.context.ordinal = ordinal;
  step.tick.info = &step.pace->info(ordinal);
  SegmentRun& segment = *step.segment;
  segment.inside.store(&step, std::memory_order_relaxed);
  if (segment.tiny_calls > 0 && !step.tiny_calls) trace_tiny_calls(segment);
  ++step.life->flat_calls;
  mr_status status = step.process(step.self, &step.tick);
  if (segment.traced) trace_flat_call(step);
  if (!says_nothing_new(step, status)) status = end_call(step, *step.tick.info, status);
  if (status == MR_END) [[unlikely]]
    step.run->stop();
  const Cause cause = cause_of(status);
  for (size_t o = 0; o < step.flat_outputs.size(); ++o) {
    const FlatPort& port = step.flat_outputs[o];
    Slot& slot = port.cells[ordinal & port.mask].slot;
    if (!shares_input(outputs[o], port.forwards)) {
      settle_plain(slot, slot_of(step, o, ordinal, outputs[o], inputs, cause));
      continue;
    }
    const FlatPort& from = step.flat_inputs[outputs[o].source];
    settle_plain(slot, from.cells[ordinal & from.mask].slot);
    hold_shared(*step.outputs[o], slot);
  }
  stamp(step, ordinal);
  return true;
}

mr_status call(HandlerRun& step, const mr_tick_info& info) {
  RunState& run = *step.run;
  if (run.changes_admitted.load(std::memory_order_acquire) != step.life->changes_seen)
    apply_changes(step, step.pace->group ? change_index(step, step.context.ordinal) : info.index);
  for (mr_output& output : step.raw_outputs) output.state = MR_OUTPUT_SILENT;
  if (!is_up(step)) return MR_OK; // silent while it restarts
  step.tick.info = &info;
  SegmentRun& segment = *step.segment;
  if (!step.trace) segment.inside.store(&step, std::memory_order_relaxed); // a reader's call is in no segment
  step.deferred_in_call = false;
  if (!step.deferred.empty()) step.caller.store(pthread_self(), std::memory_order_relaxed);
  mr_status status;
  ++step.life->other_calls;
  if (!step.trace) trace_tiny_calls(segment);
  if (!run.is_virtual && (!step.short_calls || segment.careful.load(std::memory_order_relaxed))) {
    const int64_t begin = run.now_ns(), traced_begin = trace_ticks();
    status = run_on_host(step, &step.tick);
    trace_call(step, traced_begin, trace_ticks());
    sample(step, run.now_ns() - begin);
  } else {
    const int64_t begin = segment.traced ? trace_ticks() : 0;
    status = run_on_host(step, &step.tick);
    if (segment.traced) trace_call(step, begin, trace_ticks());
  }
  if (!step.deferred.empty()) step.caller.store(pthread_t{}, std::memory_order_relaxed);
  return end_call(step, info, status);
}

StepResult HandlerRun::advance(uint64_t ordinal) { return run_handler(*this, ordinal); }

} // namespace millrace::exec
