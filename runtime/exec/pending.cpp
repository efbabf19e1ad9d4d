// Settles firings that are published later: draining of handlers that owe some, and refusal of publications that come
// too late (semantics.md 2.4, 8.4).
#include "exec/pending.h"

#include <fmt/format.h>

#include <algorithm>

#include "exec/check_call.h"
#include "exec/failure.h"
#include "exec/firing.h"
#include "exec/settle.h"
#include "exec/sink_latency.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

void refresh_oldest(HandlerRun& step) {
  const uint64_t oldest = step.owed.empty() ? UINT64_MAX : step.owed.front()->context.ordinal;
  step.oldest_owed.store(oldest, std::memory_order_release);
}

// Called under the lock. The handler may still hold its tick, so the place is reused only once its publication was
// refused, or once kVoidedMax newer firings are void.
void make_void(HandlerRun& step, Deferred& deferred) {
  void_outputs(step, deferred.outputs);
  deferred.state = Deferred::State::voided;
  step.voided.push_back(&deferred);
  if (step.voided.size() <= kVoidedMax) return;
  step.voided.front()->state = Deferred::State::unused;
  step.voided.pop_front();
}

// The oldest firing that could still be owed after this tick; UINT64_MAX if there is none. A handler holds at most
// max_pending firings, so a further firing publishes the oldest.
uint64_t oldest_after(HandlerRun& step, uint64_t ordinal, Fires fires) {
  const std::lock_guard lock(step.pending_mutex);
  const bool counts = step.counts_firings;
  const size_t before = counts ? step.counted.size() : step.owed.size();
  const size_t all = before + (fires == Fires::yes), most = step.instance->info().max_pending;
  const size_t first = all > most ? all - most : 0;
  if (first < before) return counts ? step.counted[first] : step.owed[first]->context.ordinal;
  return fires == Fires::yes ? ordinal : UINT64_MAX;
}

// The number of ticks by which the window is too small for the next tick while that firing is owed; 0 if it fits.
uint64_t ticks_missing(const HandlerRun& step, uint64_t ordinal, uint64_t oldest) {
  const uint64_t room = uint64_t{step.plan->owes()} + step.pace->plan->gap;
  return oldest != UINT64_MAX && ordinal + 2 - oldest > room ? ordinal + 2 - oldest - room : 0;
}

std::string gap_sentence(const HandlerRun& step, uint64_t oldest, uint64_t missing) {
  const uint64_t planned = step.handler->gap;
  return fmt::format(
      "it owes the result of tick {}, and more ticks without a firing came since than its gap of {} is planned for; "
      "say gap: {} or more on its input, or drains_freely() in its constructor if a drain costs nothing",
      step.pace->info(oldest).index, planned, planned + missing);
}

} // namespace

void void_outputs(const HandlerRun& step, std::span<mr_output> outputs) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    mr_output& output = outputs[o];
    const bool own = output.state == MR_OUTPUT_OWN || output.state == MR_OUTPUT_ADOPTED;
    if (own && step.outputs[o]->plan->owns) memory::release(reinterpret_cast<memory::Block*>(output.token));
    output.state = MR_OUTPUT_SILENT;
  }
}

void give_up_pending(HandlerRun& step, bool all, uint64_t current) {
  std::vector<uint64_t> given_up;
  {
    const std::lock_guard lock(step.pending_mutex);
    for (size_t i = 0; i < step.owed.size();) {
      Deferred& deferred = *step.owed[i];
      const uint64_t ordinal = deferred.context.ordinal;
      if (!all && ordinal != current) {
        ++i;
        continue;
      }
      if (ordinal != current) given_up.push_back(ordinal);
      make_void(step, deferred);
      step.owed.erase(step.owed.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::erase_if(step.counted, [&](uint64_t ordinal) { return all || ordinal == current; });
  }
  for (uint64_t ordinal : given_up) settle_empty(step, ordinal, Cause::restart);
  const std::lock_guard lock(step.pending_mutex);
  refresh_oldest(step);
}

bool owes_too_many(HandlerRun& step) {
  if (step.deferred.empty()) return false;
  const std::lock_guard lock(step.pending_mutex);
  return step.owed.size() > step.instance->info().max_pending;
}

bool drain_in_gap(HandlerRun& step, uint64_t ordinal, Fires fires) {
  if (step.deferred.empty()) return true;
  const uint64_t oldest = oldest_after(step, ordinal, fires), missing = ticks_missing(step, ordinal, oldest);
  if (missing == 0) return true;
  // A run or a stream that fails makes no more results, so a drain harms none.
  const bool freely = step.instance->info().drains_freely() || is_failing(*step.run, *step.pace->clock);
  const std::string sentence = freely ? "" : gap_sentence(step, oldest, missing);
  const bool drained = drain_step(step);
  if (drained && freely) return true;
  if (drained) step.instance->set_error(sentence);
  fail_outside_process(step, ordinal);
  return false;
}

// Checks after a call what the handler owes. A handler that publishes only in its calls would wait for itself if it
// owed too many firings, so such a call fails. If the call neither deferred its firing nor published another, for
// example because it failed, an older firing is owed than was expected before the call.
void check_debt(HandlerRun& step, uint64_t ordinal) {
  if (step.call_status == MR_PENDING && !step.asynchronous && owes_too_many(step)) {
    const uint32_t most = step.instance->info().max_pending;
    step.instance->set_error("it owes " + std::to_string(most + 1) + " firings after a call, and max_pending says " +
                             std::to_string(most));
    fail_call(step, step.pace->info(ordinal));
    step.call_status = MR_ERROR;
  }
  if (step.call_status != MR_PENDING && !drain_in_gap(step, ordinal, Fires::no)) step.call_status = MR_ERROR;
}

bool drain_step(HandlerRun& step) {
  if (step.life->drained) return true;
  step.life->drained = true;
  step.caller.store(pthread_self(), std::memory_order_relaxed);
  const bool done = step.instance->drain() == MR_OK;
  step.caller.store(pthread_t{}, std::memory_order_relaxed);
  flush_pending(step);
  return done;
}

void flush_pending(HandlerRun& step) {
  for (;;) {
    uint64_t ordinal;
    {
      const std::lock_guard lock(step.pending_mutex);
      step.counted.clear();
      if (step.owed.empty()) return;
      Deferred* deferred = step.owed.front();
      step.owed.pop_front();
      ordinal = deferred->context.ordinal;
      make_void(step, *deferred);
    }
    settle_empty(step, ordinal, Cause::silent);
    const std::lock_guard lock(step.pending_mutex);
    refresh_oldest(step);
  }
}

mr_tick* defer_firing(HandlerRun& step, const mr_tick& tick, uint64_t ordinal) {
  const std::lock_guard lock(step.pending_mutex);
  const size_t most = step.instance->info().max_pending;
  if (step.deferred_in_call || step.owed.size() > most) return nullptr; // one more than most while it publishes
  const auto free = std::find_if(step.deferred.begin(), step.deferred.end(),
                                 [](const Deferred& deferred) { return deferred.state == Deferred::State::unused; });
  if (free == step.deferred.end()) return nullptr;
  Deferred& deferred = *free;
  deferred.state = Deferred::State::owed;
  deferred.info = *tick.info;
  deferred.tick = tick;
  deferred.tick.info = &deferred.info;
  deferred.tick.inputs = nullptr;
  deferred.tick.input_count = 0;
  deferred.context = {&step, ordinal, nullptr, &deferred};
  deferred.tick.context = &deferred.context;
  deferred.outputs.assign(step.raw_outputs.begin(), step.raw_outputs.end()); // the same size each time: no allocation
  deferred.inputs.assign(step.raw_inputs.begin(), step.raw_inputs.end());
  deferred.tick.outputs = deferred.outputs.data();
  for (mr_output& output : step.raw_outputs) output.state = MR_OUTPUT_SILENT; // the firing owns what was allocated
  step.deferred_in_call = true;
  step.owed.push_back(&deferred);
  if (step.owed.size() == 1) step.oldest_owed.store(ordinal, std::memory_order_release);
  if (!step.counts_firings) return &deferred.tick;
  if (step.counted.size() == most) step.counted.erase(step.counted.begin());
  step.counted.push_back(ordinal);
  return &deferred.tick;
}

namespace {

// Settles the oldest firing that is owed; called under the lock. The caller notifies. Its outputs are checked like
// those of a call. If one is not sound, all are settled empty and the result is false; the caller then applies the
// handler's policy.
bool settle_deferred(HandlerRun& step, Deferred& deferred) {
  const uint64_t ordinal = deferred.context.ordinal;
  bool sound = true;
  for (size_t o = 0; o < deferred.outputs.size() && sound; ++o) {
    mr_output& output = deferred.outputs[o];
    if (is_withdrawn(step, o, output)) continue;
    const bool repeats = output.state == MR_OUTPUT_FORWARDED && output.source < deferred.inputs.size();
    sound = output_is_sound(step, o, output, repeats ? deferred.inputs[output.source].value : nullptr);
  }
  if (!sound) {
    step.life->errors.fetch_add(1, std::memory_order_relaxed);
    void_outputs(step, deferred.outputs);
  }
  mark_stream(step, step.tick.stream, deferred.outputs);
  settle_outputs(step, ordinal, deferred.outputs, deferred.inputs, sound ? Cause::silent : Cause::error);
  record_sink_latency(step, ordinal);
  if (step.shared->wanted) step.shared->stamp(ordinal).store(ordinal + 1, std::memory_order_release);
  step.owed.pop_front();
  deferred.state = Deferred::State::unused;
  refresh_oldest(step);
  return sound;
}

} // namespace

mr_status publish_firing(HandlerRun& step, Deferred& deferred) {
  uint64_t index;
  bool sound;
  {
    const std::lock_guard lock(step.pending_mutex);
    if (deferred.state == Deferred::State::voided) {
      std::erase(step.voided, &deferred);
      deferred.state = Deferred::State::unused;
      return MR_ERROR;
    }
    if (step.owed.empty() || step.owed.front() != &deferred) return MR_ERROR;
    index = deferred.info.index;
    sound = settle_deferred(step, deferred);
  }
  if (!sound && step.handler->on_error == graph::OnError::fail)
    step.run->fail(step, index, step.instance->take_error("publish"));
  else if (!sound)
    log_error(step);
  const bool outside = !pthread_equal(step.caller.load(std::memory_order_relaxed), pthread_self());
  if (outside && !step.asynchronous)
    step.run->fail(step, index,
                   "it publishes from another thread than the one that calls it; such a handler says asynchronous() in "
                   "its constructor");
  // A second cut may move the step to another segment while another thread publishes.
  outside ? step.run->notify(*step.pace) : step.run->notify(*step.segment);
  return MR_OK;
}

} // namespace millrace::exec
