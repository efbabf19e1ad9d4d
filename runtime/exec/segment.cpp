// Carries a segment forward tick by tick and step by step, until a step has to wait.
#include "exec/segment.h"

#include <algorithm>
#include <utility>

#include "exec/admission.h"
#include "exec/channel.h"
#include "exec/finish_step.h"
#include "exec/firing.h"
#include "exec/group.h"
#include "exec/pending.h"
#include "exec/run_log.h"
#include "exec/run_state.h"
#include "exec/sink_latency.h"
#include "exec/stream_life.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// The `progress` of a finished segment. Ordinals below `progress` are done for good, so it holds nothing back.
constexpr uint64_t kFinished = UINT64_MAX;

// The ticks of one segment that a worker runs before it looks at its others. If they were short, it goes on by
// kTicksMore until kMoreNs have passed: for another segment it has to bring other words into its cache, which takes
// some 10 µs for 8 handlers (docs/decisions/0070).
constexpr uint32_t kTicksAtOnce = 256, kTicksMore = 32;
constexpr int64_t kMoreNs = 200'000;

bool devices_idle(SegmentRun& segment) {
  if (!segment.device) return true;
  for (const device::Fence& fence : segment.fences)
    if (!fence.done()) return false;
  return true;
}

// After the last tick: drains the handlers, publishes or settles what they still owe, and closes channels.
void finish(SegmentRun& segment) {
  RunState& run = *segment.run;
  for (StepRun* step : segment.steps) {
    HandlerRun* const owing = drained_here(*step);
    const bool is_up = owing && owing->life->is_started && !RunState::is_given_up(*owing);
    if (is_up && !run.abort.load(std::memory_order_relaxed)) {
      const bool failed_before =
          owing->life->errors.load(std::memory_order_relaxed) > 0 && owing->handler->on_error == graph::OnError::fail;
      if (!drain_step(*owing) && !failed_before) run.fail(*owing, segment.ordinal, owing->instance->error());
    }
    if (HandlerRun* called = step->called()) flush_pending(*called);
    if (auto* const give = dynamic_cast<GiveRun*>(step)) leave_group(*give, true);
    if (step->plan->is<plan::GateStep>() || step->plan->is<plan::PostStep>())
      close_channel(*run.planned.channels[step->plan->channel()]);
  }
  segment.progress.store(kFinished, std::memory_order_release);
  segment.done.store(true, std::memory_order_release);
  run.planned.segments_left.fetch_sub(1, std::memory_order_acq_rel);
  run.notify_all(); // others may wait for the run to be over
  run.notify_carrier();
}

// Reads the clock once, for the time at which the first call of the tick begins and, if this segment is the head, at
// which the tick was admitted.
void trace_begin(SegmentRun& segment) {
  PaceRun& pace = *segment.pace;
  segment.traced_until = segment.run->trace_now();
  if (!segment.head || !segment.trace || !pace.is_clock) return;
  const int64_t now = segment.traced_until;
  segment.trace->add({now, now, pace.info(segment.ordinal).trace_id, segment.steps[0]->index, TraceKind::admit});
}

bool admit(SegmentRun& head) {
  if (!try_admit(*head.pace)) return false;
  head.run->notify(head); // once for the stamps and for `admitted`
  return true;
}

// Begins the next ordinal of this lane. False if it is not there yet; at the end of the pace the segment then finishes.
bool begin_tick(SegmentRun& segment) {
  PaceRun& pace = *segment.pace;
  // The stamp first: a hand-over then moves one cache line, not two.
  const bool there = (segment.first && segment.first->settled(segment.ordinal)) ||
                     pace.admitted.load(std::memory_order_acquire) > segment.ordinal ||
                     (segment.head && admit(segment));
  if (!there) {
    // The end is looked at first: no ordinal is admitted after it.
    const bool ended = pace.ended.load(std::memory_order_acquire);
    if (!ended && !must_end_epoch(segment)) return false;
    if (pace.admitted.load(std::memory_order_acquire) <= segment.ordinal) {
      if (devices_idle(segment)) ended ? finish(segment) : end_epoch(segment);
      return false;
    }
  }
  segment.in_tick.store(true, std::memory_order_relaxed);
  segment.cursor = 0;
  segment.row = 0;
  segment.measured = pace.is_measured(segment.ordinal);
  RunState& run = *segment.run;
  // A group's firings are counted, not their rows.
  const uint64_t nth = pace.group ? segment.ordinal / pace.plan->rows : segment.ordinal;
  segment.careful.store((nth & kTimedMask) == kTimedTick || run.any_failed.load(std::memory_order_relaxed) ||
                            run.changes_admitted.load(std::memory_order_relaxed) != segment.changes_seen ||
                            pace.taps_armed.load(std::memory_order_relaxed) != 0,
                        std::memory_order_relaxed);
  if (segment.traced || segment.careful.load(std::memory_order_relaxed)) trace_begin(segment);
  return true;
}

// For a measured tick: the last of its clock's segments to end it records how long it took. Out of line, because few
// ticks need it.
[[gnu::cold, gnu::noinline]] void record_ended(SegmentRun& segment) {
  PaceRun& pace = *segment.pace;
  if (!pace.is_clock) return;
  PaceRun::Latency& latency = pace.latency[segment.ordinal & pace.mask];
  if (latency.segments_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const int64_t took = segment.run->now_ns() - latency.from_ns;
  segment.latencies.add(took);
  if (segment.ordinal == 0) pace.first_ns.set(took);
}

void end_tick(SegmentRun& segment) {
  PaceRun& pace = *segment.pace;
  const uint64_t ordinal = segment.ordinal;
  if (!segment.ended_at_ns.empty())
    segment.ended_at_ns[ordinal & pace.mask].store(segment.run->now_ns(), std::memory_order_relaxed);
  if (segment.measured) [[unlikely]]
    record_ended(segment);
  if (segment.careful.load(std::memory_order_relaxed)) {
    segment.changes_seen = SIZE_MAX; // ticks stay careful until every handler has taken the changes in
    for (StepRun* step : segment.steps)
      if (const HandlerRun* called = step->called())
        segment.changes_seen =
            std::min(segment.changes_seen, called->life->changes_seen.load(std::memory_order_relaxed));
    if (segment.changes_seen == SIZE_MAX) segment.changes_seen = segment.run->changes_admitted.load();
  }
  segment.inside.store(nullptr, std::memory_order_relaxed);
  segment.in_tick.store(false, std::memory_order_relaxed);
  segment.ordinal += segment.stride;
  segment.progress.store(segment.ordinal, std::memory_order_release);
  segment.run->notify(segment);
}

// The first stamp that a waiting handler step lacks, though it may lack more than that; null if it lacks none, and for
// other kinds of steps.
const StepStamps* stamp_awaited(const StepRun& step, uint64_t ordinal) {
  if (!step.plan->is<plan::HandlerStep>()) return nullptr;
  for (const InputRun& input : step.inputs)
    if (input.producer && input.delay == 0 && !input.producer->settled(ordinal)) return input.producer;
  return nullptr;
}

// Notes the latency of a sink whose call on a measured tick has returned. It is noted elsewhere for a call whose result
// is published later and for one that runs on a device's own time.
void record_returned(HandlerRun& step, uint64_t ordinal) {
  if (!step.sink_latency || step.on.device || step.call_status == MR_PENDING) return;
  std::unique_lock lock(step.pending_mutex, std::defer_lock);
  if (!step.deferred.empty()) lock.lock(); // another thread may publish an earlier one
  record_sink_latency(step, ordinal);
}

// Runs steps from the cursor on. False if one waits or a call takes virtual time.
template <bool measured>
bool run_steps(SegmentRun& segment, bool& moved) {
  while (segment.cursor < segment.steps.size()) {
    StepRun& step = *segment.steps[segment.cursor];
    if (step.flat && !segment.careful.load(std::memory_order_relaxed)) {
      auto& handler = static_cast<HandlerRun&>(step);
      if (run_flat(handler, segment.ordinal)) {
        if constexpr (measured) record_sink_latency(handler, segment.ordinal);
        ++segment.cursor;
        continue;
      }
    }
    [[maybe_unused]] HandlerRun* const called = measured ? step.called() : nullptr;
    [[maybe_unused]] const bool calling = called && called->calling;
    [[maybe_unused]] const uint64_t calls = called ? called->life->calls() : 0;
    const StepResult result = step.advance(segment.ordinal);
    if (result == StepResult::waiting || result == StepResult::made_room) {
      moved = moved || result == StepResult::made_room;
      segment.awaits.store(stamp_awaited(step, segment.ordinal), std::memory_order_relaxed);
      segment.waiting_at.store(&step, std::memory_order_relaxed);
      segment.inside.store(nullptr, std::memory_order_relaxed);
      return false;
    }
    moved = true;
    if (result == StepResult::calling) return false;
    if constexpr (measured)
      if (called && (calling || called->life->calls() != calls)) record_returned(*called, segment.ordinal);
    ++segment.cursor;
  }
  return true;
}

// Runs steps of a group from the cursor on, each of them on all items of the firing. False as above.
bool run_firing(SegmentRun& segment, bool& moved) {
  GroupRun& group = *segment.pace->group;
  const uint32_t items = group.firing(segment.ordinal).count;
  for (; segment.cursor < segment.steps.size(); ++segment.cursor, segment.row = 0) {
    StepRun& step = *segment.steps[segment.cursor];
    const uint32_t calls = step.takes_firings ? 1 : items;
    HandlerRun* const called = step.called();
    for (; segment.row < calls; ++segment.row) {
      const uint64_t ordinal = segment.ordinal + segment.row;
      if (called) called->tick.stream = group.item(ordinal).give->give->stream;
      const StepResult result = step.advance(ordinal);
      if (result == StepResult::waiting || result == StepResult::made_room) {
        moved = moved || result == StepResult::made_room;
        segment.awaits.store(nullptr, std::memory_order_relaxed);
        segment.waiting_at.store(&step, std::memory_order_relaxed);
        segment.inside.store(nullptr, std::memory_order_relaxed);
        return false;
      }
      moved = true;
      if (result == StepResult::calling) return false;
      if (called && !step.takes_firings && segment.pace->is_measured(ordinal)) record_returned(*called, ordinal);
    }
  }
  return true;
}

// Out of line, so that the loop for the other ticks stays short.
[[gnu::noinline]] bool run_measured_steps(SegmentRun& segment, bool& moved) { return run_steps<true>(segment, moved); }

} // namespace

bool advance(SegmentRun& segment, uint32_t ticks_max) {
  bool moved = false;
  if (segment.done.load(std::memory_order_relaxed)) return false;
  if (segment.busy_until_ns > 0 && segment.busy_until_ns > segment.run->now_ns()) return false;
  const Claim claim(segment);
  std::unique_lock<std::mutex> submits; // threads that submit to one device take turns
  if (segment.submitting) submits = std::unique_lock(*segment.submitting);
  for (uint32_t tick = 0; tick < ticks_max; ++tick) {
    if (!segment.in_tick.load(std::memory_order_relaxed)) {
      const uint32_t epochs_over = segment.epochs_over.load(std::memory_order_relaxed);
      if (!begin_tick(segment)) {
        segment.waiting_at.store(nullptr, std::memory_order_relaxed);
        const bool stirred = segment.head && std::exchange(segment.pace->stirred, false);
        return moved || stirred || segment.done.load(std::memory_order_relaxed) ||
               segment.epochs_over.load(std::memory_order_relaxed) != epochs_over;
      }
      moved = true;
    } else if (segment.traced) {
      segment.traced_until = trace_ticks(); // waiting is not part of a handler's call
    }
    const bool done = segment.pace->group ? run_firing(segment, moved)
                      : segment.measured  ? run_measured_steps(segment, moved)
                                          : run_steps<false>(segment, moved);
    trace_tiny_calls(segment); // before the place of the ordinal is used for another
    if (!done) return moved;
    end_tick(segment);
  }
  return moved;
}

bool run_turn(SegmentRun& segment) {
  bool moved = false;
  const auto all_of = [&](uint32_t ticks) {
    const uint64_t begin = segment.ordinal;
    moved = advance(segment, ticks) || moved;
    return segment.ordinal - begin == ticks * segment.stride;
  };
  if (!all_of(kTicksAtOnce)) return moved;
  const int64_t until = segment.run->now_ns() + kMoreNs;
  while (segment.run->now_ns() < until && all_of(kTicksMore)) continue;
  return moved;
}

} // namespace millrace::exec
