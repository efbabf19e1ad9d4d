// Restarts streams that have failed; see stream_life.h.
#include "exec/stream_life.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "exec/channel.h"
#include "exec/failure.h"
#include "exec/fill_tick.h"
#include "exec/finish_step.h"
#include "exec/group.h"
#include "exec/handler_state.h"
#include "exec/pending.h"
#include "exec/presence.h"
#include "exec/reader.h"
#include "exec/run_log.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "exec/stream_epochs.h"
#include "observe/error_codes.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// A stream that has run for so long has not failed in a row when it fails.
constexpr int64_t kRunsWellNs = kBackOffMaxNs;

// Has the head look again at that time, or when the run is to end.
void look_at(PaceRun& pace, int64_t time_ns) {
  const int64_t duration = pace.run->options.duration_ns;
  const int64_t end = duration > 0 ? pace.clock->start_ns + duration : INT64_MAX;
  pace.due_ns.store(std::min(time_ns, end), std::memory_order_relaxed);
}

void look_again(PaceRun& pace) { pace.due_ns.store(pace.run->now_ns() + kAskAgainNs, std::memory_order_relaxed); }

void take_stage(PaceRun& pace, Stage stage) {
  pace.clock->stage = stage;
  pace.clock->rests.store(stage == Stage::down || stage == Stage::vacant);
  pace.stirred = true;
}

// True once no thread is inside a source of the clock.
bool have_left(ClockRun& clock) {
  bool left = true;
  for (SourceState& source : clock.sources) left = (!source.reader || source.reader->leave()) && left;
  return left;
}

// Lets go of the values of the epoch. No segment that the pace gives ticks runs, so no step reads them; far paces hold
// on their own what they still read.
void let_go(PaceRun& pace) {
  for (SourceState& source : pace.clock->sources) {
    if (source.has_value) release_all(source.value);
    if (source.has_next) release_all(source.next);
    source.has_value = source.has_next = false;
  }
  for (const auto& other : pace.run->planned.paces) {
    if (&root_of(*other) != &pace) continue;
    for (OutputRun* output : other->held_outputs)
      for (uint64_t at = 0; at <= output->mask; ++at) release(output->cells[at].slot);
  }
}

void back_off(PaceRun& pace) {
  ClockRun& clock = *pace.clock;
  const int64_t wait = back_off_ns(clock.failed_in_a_row++);
  clock.begins_at_ns = pace.run->now_ns() + wait;
  look_at(pace, clock.begins_at_ns);
  pace.idle_until_ns.store(clock.begins_at_ns, std::memory_order_relaxed);
  take_stage(pace, Stage::down);
  log_stream_down(pace, wait);
}

Started start(SourceState& source) {
  if (source.reader) return source.reader->started();
  return start_anew(*source.step) ? Started::yes : Started::failed;
}

Started start_sources(ClockRun& clock) {
  Started all = Started::yes;
  for (SourceState& source : clock.sources) {
    if (!source.starts) continue;
    const Started one = start(source);
    source.starts = one == Started::not_yet;
    if (one == Started::failed) {
      log_error(*source.step);
      return one;
    }
    if (one == Started::not_yet) all = one;
  }
  return all;
}

// True if the stream begins anew; else it is over, and leaves its seat.
bool comes_back(const PaceRun& pace) {
  const ClockRun& clock = *pace.clock;
  const std::lock_guard lock(pace.run->failure_mutex);
  return clock.plan->restarts && clock.failure && !clock.removed.load();
}

void leave(PaceRun& pace, Left left) {
  for (SourceState& source : pace.clock->sources)
    if (source.reader) source.reader->stop(); // it has left, but where another source could not start
  look_at(pace, INT64_MAX);
  pace.idle_until_ns.store(INT64_MAX, std::memory_order_relaxed);
  take_stage(pace, Stage::vacant);
  vacate(pace, left);
}

// The source that did not start.
const SourceRun& failed_source(const ClockRun& clock) {
  const auto failed = std::find_if(clock.sources.begin(), clock.sources.end(), [](const SourceState& source) {
    return !source.starts && !source.step->life->is_started;
  });
  return *(failed == clock.sources.end() ? clock.sources.front() : *failed).step;
}

// The failure is that of the stream before, or says why this one was not there yet.
void forget_failure(RunState& run, ClockRun& clock) {
  const std::lock_guard lock(run.failure_mutex);
  clock.failure.reset();
}

void begin(PaceRun& pace) {
  RunState& run = *pace.run;
  ClockRun& clock = *pace.clock;
  clock.began_ns = run.now_ns();
  pace.first_index = pace.admitted.load(std::memory_order_relaxed);
  clock.first_of_epoch = true;
  clock.media_shift_ns = kShiftUnknown;
  skip_beats(pace);
  const int64_t media_ns = next_media_ns(pace);
  for (SourceState& source : clock.sources) source.begin_anew(media_ns);
  await_value(pace);
  const bool comes = clock.seat->vacant.exchange(false);
  if (!comes) ++clock.restarts;
  take_stage(pace, Stage::runs);
  pace.due_ns.store(clock.began_ns, std::memory_order_relaxed);
  pace.epoch.store(pace.epochs_over.load(std::memory_order_relaxed));
  if (comes) forget_failure(run, clock);
  record_epoch(run, clock, pace.epoch.load());
  log_stream_began(pace);
  if (comes) answer_come(pace, nullptr);
}

// Each of these is called while the stream is in that stage. True if it has gone on to another stage.

bool leaves_runs(PaceRun& pace) {
  ClockRun& clock = *pace.clock;
  if (pace.run->now_ns() - clock.began_ns >= kRunsWellNs) clock.failed_in_a_row = 0;
  take_stage(pace, Stage::leaving);
  pace.idle_until_ns.store(INT64_MIN, std::memory_order_relaxed);
  return true;
}

bool leaves_leaving(PaceRun& pace) {
  if (!have_left(*pace.clock)) {
    look_again(pace);
    return false;
  }
  pace.due_ns.store(INT64_MAX, std::memory_order_relaxed);
  pace.epochs_over.fetch_add(1, std::memory_order_release);
  take_stage(pace, Stage::draining);
  pace.run->notify(pace);
  return true;
}

bool leaves_draining(PaceRun& pace) {
  if (!have_ended_epoch(pace)) return false;
  let_go(pace);
  std::atomic<bool>& leaves = pace.clock->leaves;
  if (comes_back(pace)) {
    leaves.store(false, std::memory_order_relaxed);
    back_off(pace);
  } else if (leaves.exchange(true, std::memory_order_relaxed)) {
    leaves.store(false, std::memory_order_relaxed);
    leave(pace, pace.clock->removed.load() ? Left::removed : Left::by_itself);
  } else {
    take_stage(pace, Stage::leaving); // once more, which drains those that owe nothing
  }
  return true;
}

bool leaves_vacant(PaceRun& pace) {
  ClockRun& clock = *pace.clock;
  look_at(pace, INT64_MAX);
  clock.rests.store(true); // before the look: whoever asks for something sets it back afterwards
  if (!has_come(pace)) return false;
  clock.rests.store(false);
  clock.begins_at_ns = pace.run->now_ns();
  take_stage(pace, Stage::down);
  return true;
}

bool leaves_down(PaceRun& pace) {
  ClockRun& clock = *pace.clock;
  if (clock.removed.load()) { // its handlers are not drained yet
    clock.leaves.store(true, std::memory_order_relaxed);
    take_stage(pace, Stage::leaving);
    return true;
  }
  if (pace.run->now_ns() < clock.begins_at_ns) return false;
  pace.idle_until_ns.store(INT64_MIN, std::memory_order_relaxed);
  for (SourceState& source : clock.sources) {
    source.starts = true;
    if (source.reader) source.reader->begin_anew(source.due_times);
  }
  take_stage(pace, Stage::starting);
  return true;
}

bool leaves_starting(PaceRun& pace) {
  ClockRun& clock = *pace.clock;
  if (clock.removed.load()) {
    take_stage(pace, Stage::leaving);
    return false;
  }
  const Started started = start_sources(clock);
  if (started == Started::not_yet) look_again(pace);
  if (started == Started::failed && clock.seat->vacant.load()) { // a stream that was to come
    const SourceRun& source = failed_source(clock);
    const Error error = start_error(source, source.instance->taken_error());
    leave(pace, Left::removed);
    answer_come(pace, &error);
  } else if (started == Started::failed) {
    take_stage(pace, Stage::leaving); // another source may have started
    pace.due_ns.store(pace.run->now_ns(), std::memory_order_relaxed);
  }
  if (started != Started::yes) return false;
  begin(pace);
  return true;
}

bool leaves_stage(PaceRun& pace) {
  switch (pace.clock->stage) {
    case Stage::runs: return leaves_runs(pace);
    case Stage::leaving: return leaves_leaving(pace);
    case Stage::draining: return leaves_draining(pace);
    case Stage::down: return leaves_down(pace);
    case Stage::starting: return leaves_starting(pace);
    case Stage::vacant: return leaves_vacant(pace);
  }
  return false;
}

} // namespace

HandlerRun* drained_here(StepRun& step) {
  if (auto* finish = dynamic_cast<FinishRun*>(&step)) return finish->body;
  const auto* body = dynamic_cast<BodyRun*>(&step);
  return body && body->finisher ? nullptr : step.called();
}

bool start_anew(HandlerRun& source) {
  if (source.life->is_started && stop_handler(source) != MR_OK) log_error(source);
  source.life->is_started = reset_handler(source) == MR_OK && start_handler(source) == MR_OK;
  return source.life->is_started;
}

bool has_begun_anew(PaceRun& pace) {
  while (leaves_stage(pace))
    if (pace.clock->stage == Stage::runs) return true;
  return false;
}

bool must_end_epoch(const SegmentRun& segment) {
  return segment.pace->epochs_over.load(std::memory_order_acquire) !=
         segment.epochs_over.load(std::memory_order_relaxed);
}

void end_epoch(SegmentRun& segment) {
  const uint32_t over = segment.pace->epochs_over.load(std::memory_order_acquire);
  for (StepRun* step : segment.steps) {
    HandlerRun* const ending = drained_here(*step);
    const bool is_up = ending && ending->life->is_started && !RunState::is_given_up(*ending);
    if (is_up && !ending->plan->is<plan::SourceStep>()) {
      // One that owes nothing goes on unless it leaves with its stream: a writer would close its file.
      const bool leaves =
          segment.pace->clock->leaves.load(std::memory_order_relaxed) && !ending->handler->stream.empty();
      if ((leaves || ending->instance->info().max_pending > 0) && !drain_step(*ending))
        segment.run->fail(*ending, segment.ordinal, ending->instance->take_error("drain"));
      ending->life->drained = false;
      if (!ending->life->down && reset_handler(*ending) != MR_OK) log_error(*ending);
    }
    if (HandlerRun* called = step->called()) flush_pending(*called);
    for (InputRun& input : step->inputs) {
      release(input.last);
      for (Slot& kept : input.kept) release(kept);
    }
    if (auto* const give = dynamic_cast<GiveRun*>(step)) leave_group(*give, false);
    if (!step->plan->is<plan::GateStep>()) continue;
    ChannelRun& channel = *segment.run->planned.channels[step->plan->channel()];
    const std::lock_guard lock(channel.mutex);
    channel.epochs_over = over;
    channel.dry.store(false, std::memory_order_relaxed);
  }
  segment.epochs_over.store(over, std::memory_order_release);
  segment.run->notify(segment);
}

void mark_first_values(PaceRun& pace) {
  bool all = true;
  for (SourceState& source : pace.clock->sources) {
    if (!source.marks_next) continue;
    for (Slot& slot : source.value)
      if (slot.block && slot.value) {
        slot.block->value->header.flags |= MR_FLAG_DISCONTINUITY;
        source.marks_next = false;
      }
    all = all && !source.marks_next;
  }
  if (all) pace.clock->first_of_epoch = false;
}

bool leaves_seat(PaceRun& pace) {
  if (!pace.clock->plan->has_room) return false;
  const std::lock_guard lock(pace.run->failure_mutex);
  pace.clock->halted.store(true);
  pace.stirred = true;
  return true;
}

bool loses_source(PaceRun& pace, uint64_t ordinal) {
  const ClockRun& clock = *pace.clock;
  if (!clock.plan->restarts) return false;
  const bool failed = std::any_of(clock.sources.begin(), clock.sources.end(), [](const SourceState& source) {
    return source.reader && source.reader->started() == Started::failed;
  });
  if (!clock.plan->live && !failed) return false;
  pace.run->fail_clock({code::handler_failed, "the source of a live stream has ended", {}, {}, "", ""}, pace, ordinal);
  pace.stirred = true;
  return true;
}

} // namespace millrace::exec
