// The head of a pace: when a tick begins, what the sources gave for it, and when the window has room (semantics.md
// 1.1 to 1.6). Everything here is done by the segment that holds the head.
#include "exec/reader.h"
#include "exec/state.h"

namespace millrace::exec {

namespace {

// Without any rate media time counts this many ticks a second.
constexpr int64_t kNominalRate = 30;
// A source that said "not yet" is asked again after this long, unless something else moves first.
constexpr int64_t kAskAgainNs = 1'000'000;

int64_t beat_ns(const graph::Rational& rate, int64_t beat) {
  // Whole seconds and the rest apart, so that no product overflows within centuries.
  const int64_t seconds_num = beat * rate.denominator;
  return seconds_num / rate.numerator * 1'000'000'000 + seconds_num % rate.numerator * 1'000'000'000 / rate.numerator;
}

graph::Rational rate_of(const PaceRun& pace) {
  return pace.clock->rate.numerator > 0 ? pace.clock->rate : graph::Rational{kNominalRate, 1};
}

void end(PaceRun& pace) {
  pace.due_ns.store(INT64_MAX, std::memory_order_relaxed);
  pace.ended.store(true, std::memory_order_release);
  pace.run->notify();
}

// Slots whose ordinals have left the window let go of their blocks.
void retire(PaceRun& pace, uint64_t ordinal) {
  for (OutputRun* output : pace.held_outputs) {
    const uint64_t age = pace.window + output->retain;
    if (ordinal >= age) release(output->at(ordinal - age));
  }
}

bool window_full(PaceRun& pace, uint64_t ordinal) {
  if (ordinal < pace.window || pace.completed_seen > ordinal - pace.window) return false;
  pace.completed_seen = completed(pace);
  return pace.completed_seen <= ordinal - pace.window;
}

// When the tick that made room in the window was done.
int64_t room_since_ns(const PaceRun& pace, uint64_t ordinal) {
  if (ordinal < pace.window) return INT64_MIN;
  const uint64_t freed = ordinal - pace.window;
  int64_t latest = INT64_MIN;
  for (const SegmentRun* segment : pace.segments) {
    if (freed % segment->plan->lanes != segment->plan->lane) continue;
    const int64_t at = segment->ended_at_ns[freed & pace.mask].load(std::memory_order_relaxed);
    if (at > latest) latest = at;
  }
  return latest;
}

// Finds the beat to run now. False where none is due; then due_ns says when to look again.
bool find_beat(PaceRun& pace, uint64_t ordinal) {
  const int64_t now = pace.run->now_ns();
  if (pace.start_ns < 0) pace.start_ns = now;
  const auto due = [&](int64_t beat) { return pace.start_ns + beat_ns(pace.clock->rate, beat); };
  if (due(pace.next_beat) <= now && window_full(pace, ordinal)) {
    for (; due(pace.next_beat) <= now; ++pace.next_beat) ++pace.late;
  }
  if (due(pace.next_beat) <= now) {
    // Beats that came while the window was full, though it has room by now, were late all the same.
    for (const int64_t since = room_since_ns(pace, ordinal);
         due(pace.next_beat) < since && due(pace.next_beat) <= now;) {
      ++pace.late;
      ++pace.next_beat;
    }
    for (; due(pace.next_beat + 1) <= now; ++pace.next_beat) ++pace.skipped; // the clock itself came late
  }
  pace.due_ns.store(due(pace.next_beat), std::memory_order_relaxed);
  return due(pace.next_beat) <= now;
}

// One call of the source, its outputs into `slots`.
Answer ask(SourceState& source, const mr_tick_info& info, uint64_t ordinal, std::vector<Slot>& slots) {
  if (source.reader) return source.reader->take(slots);
  StepRun& step = *source.step;
  step.context.ordinal = ordinal;
  const mr_status status = call(step, info);
  if (status == MR_NOT_YET) return Answer::not_yet;
  if (status == MR_END) return Answer::end;
  for (size_t o = 0; o < slots.size(); ++o) {
    slots[o] = step.raw_outputs[o].state == MR_OUTPUT_SILENT ? Slot{} : slot_of(step.raw_outputs[o], step);
    if (!slots[o].value) slots[o].cause = status == MR_ERROR ? Cause::error : Cause::silent;
  }
  return Answer::value;
}

int64_t pts_of(const std::vector<Slot>& slots, int64_t otherwise) {
  for (const Slot& slot : slots)
    if (slot.value) return slot.value->header.pts_ns;
  return otherwise;
}

bool has_rate(const SourceState& source) {
  return source.step->run->facts.handlers[source.step->plan->handler].facts.rate_num > 0;
}

// Under `realtime` a source with a rate gives the newest value that is due; those it passes over are counted.
void take_newest_due(SourceState& source, const mr_tick_info& info, uint64_t ordinal) {
  while (!source.ended) {
    if (!source.has_next) {
      const Answer answer = ask(source, info, ordinal, source.next);
      source.ended = answer == Answer::end;
      if (answer != Answer::value) return;
      source.has_next = true;
      source.next_pts = pts_of(source.next, info.media_time_ns);
    }
    if (source.next_pts > info.media_time_ns) return;
    if (source.has_value) {
      ++source.passed_over;
      for (Slot& slot : source.value) release(slot);
    }
    std::swap(source.value, source.next);
    source.has_value = true;
    source.has_next = false;
  }
}

void ask_at_beat(SourceState& source, const mr_tick_info& info, uint64_t ordinal) {
  source.has_value = false;
  for (Slot& slot : source.value) slot = Slot{};
  if (source.ended && !source.has_next) return;
  if (has_rate(source) && !source.reader) {
    take_newest_due(source, info, ordinal);
    if (source.has_next && source.ended && source.next_pts <= info.media_time_ns) {
      std::swap(source.value, source.next);
      source.has_value = true;
      source.has_next = false;
    }
  } else {
    const Answer answer = ask(source, info, ordinal, source.value);
    source.ended = source.ended || answer == Answer::end;
    source.has_value = answer == Answer::value;
  }
  if (source.has_value) return;
  for (Slot& slot : source.value) {
    slot = Slot{};
    slot.cause = source.ended ? Cause::end : Cause::not_yet;
  }
}

// Whether all that could still give a value has ended.
bool sources_ended(const PaceRun& pace) {
  if (pace.sources.empty()) return false;
  bool all = true;
  for (const SourceState& source : pace.sources) {
    const bool over = source.ended && !source.has_next && !source.has_value;
    if (source.step->index == pace.clock->driver && over) return true;
    all = all && over;
  }
  return all;
}

// `free` and `source`: every source gives its next value, waited for. False while one has none yet.
bool ask_for_next(PaceRun& pace, const mr_tick_info& info, uint64_t ordinal) {
  bool waiting = false;
  for (SourceState& source : pace.sources) {
    if (source.ended || source.has_value) continue;
    const Answer answer = ask(source, info, ordinal, source.value);
    source.has_value = answer == Answer::value;
    source.ended = answer == Answer::end;
    waiting = waiting || answer == Answer::not_yet;
    if (source.ended) {
      for (Slot& slot : source.value) {
        slot = Slot{};
        slot.cause = Cause::end;
      }
    }
  }
  if (waiting) pace.due_ns.store(pace.run->now_ns() + kAskAgainNs, std::memory_order_relaxed);
  return !waiting;
}

int64_t media_time(const PaceRun& pace, const mr_tick_info& info) {
  for (const SourceState& source : pace.sources) {
    const bool paces = pace.clock->driver == plan::kNone || pace.clock->driver == source.step->index;
    if (source.has_value && paces && has_rate(source)) return pts_of(source.value, info.media_time_ns);
  }
  return info.media_time_ns;
}

void admit_changes(RunState& run, uint64_t index) {
  const std::lock_guard lock(run.changes_mutex);
  for (; run.changes_waiting_from < run.changes.size(); ++run.changes_waiting_from) {
    RunState::Change& change = run.changes[run.changes_waiting_from];
    if (change.at_index == UINT64_MAX)
      change.at_index = index;
    else if (change.at_index > index)
      break; // a script's: its tick has not come
  }
  run.changes_admitted.store(run.changes_waiting_from, std::memory_order_release);
  run.changes_waiting.store(run.changes_waiting_from < run.changes.size(), std::memory_order_relaxed);
}

void publish_tick(PaceRun& pace, uint64_t ordinal, const mr_tick_info& info) {
  pace.infos[ordinal & pace.mask] = info;
  if (!pace.run->plan.channels.empty())
    pace.tick_index[ordinal & pace.mask].store(info.index, std::memory_order_relaxed);
  for (SourceState& source : pace.sources) {
    for (size_t o = 0; o < source.value.size(); ++o) source.step->outputs[o]->at(ordinal) = source.value[o];
    source.has_value = false;
    if (source.step->shared->wanted) // its readers look at `admitted` first: one ring for both
      source.step->shared->stamp(ordinal).store(ordinal + 1, std::memory_order_release);
  }
  if ((ordinal & kLatencySampleMask) == 0) {
    PaceRun::Latency& latency = pace.latency[ordinal & pace.mask];
    const int64_t due = info.deadline_ns ? pace.start_ns + info.media_time_ns : INT64_MAX;
    latency.from_ns = std::min(due, pace.run->now_ns());
    uint32_t lanes = 0;
    for (const SegmentRun* segment : pace.segments) lanes += segment->plan->lane == ordinal % segment->plan->lanes;
    latency.segments_left.store(lanes, std::memory_order_release);
  }
  pace.admitted.store(ordinal + 1, std::memory_order_release);
  pace.run->notify();
}

bool must_end(PaceRun& pace, uint64_t ordinal) {
  const RunState& run = *pace.run;
  if (run.stopping.load(std::memory_order_relaxed) || run.failing.load(std::memory_order_relaxed)) return true;
  if (run.options.ticks_max && ordinal >= run.options.ticks_max) return true;
  return run.options.duration_ns && pace.start_ns >= 0 && run.now_ns() - pace.start_ns >= run.options.duration_ns;
}

bool admit_clock_tick(PaceRun& pace) {
  const uint64_t ordinal = pace.admitted.load(std::memory_order_relaxed);
  if (must_end(pace, ordinal)) {
    end(pace);
    return false;
  }
  // Before the sources are asked: they belong to the tick.
  if (pace.run->changes_waiting.load(std::memory_order_relaxed)) admit_changes(*pace.run, ordinal);
  mr_tick_info info{};
  info.clock = pace.plan->clock;
  info.index = ordinal;
  info.trace_id = (uint64_t{pace.plan->clock} << 48) + ordinal;
  if (pace.clock->mode == graph::ClockMode::realtime) {
    if (!find_beat(pace, ordinal)) return false;
    info.media_time_ns = beat_ns(pace.clock->rate, pace.next_beat);
    info.deadline_ns = pace.start_ns + beat_ns(pace.clock->rate, pace.next_beat + 1);
    retire(pace, ordinal);
    for (SourceState& source : pace.sources) ask_at_beat(source, info, ordinal);
    if (sources_ended(pace)) {
      end(pace);
      return false;
    }
    ++pace.next_beat;
  } else {
    if (pace.start_ns < 0 && (pace.run->options.duration_ns || pace.clock->live)) pace.start_ns = pace.run->now_ns();
    if (window_full(pace, ordinal)) return false;
    info.media_time_ns = beat_ns(rate_of(pace), static_cast<int64_t>(ordinal));
    if (pace.retired <= ordinal) {
      retire(pace, ordinal);
      pace.retired = ordinal + 1;
    }
    if (!ask_for_next(pace, info, ordinal)) return false;
    if (sources_ended(pace)) {
      end(pace);
      return false;
    }
    info.media_time_ns = std::max(media_time(pace, info), pace.last_media_ns + 1);
  }
  pace.last_media_ns = info.media_time_ns;
  publish_tick(pace, ordinal, info);
  return true;
}

bool admit_entry(PaceRun& pace) {
  const uint64_t ordinal = pace.admitted.load(std::memory_order_relaxed);
  if (window_full(pace, ordinal)) return false;
  {
    ChannelRun& feed = *pace.feed;
    const std::lock_guard lock(feed.mutex);
    if (feed.count == 0) {
      if (feed.closed) end(pace);
      return false;
    }
    retire(pace, ordinal);
    Entry& entry = feed.at(0);
    pace.infos[ordinal & pace.mask] = entry.info;
    pace.tick_index[ordinal & pace.mask].store(entry.info.index, std::memory_order_relaxed);
    for (size_t o = 0; o < entry.slots.size(); ++o) {
      pace.entry->outputs[o]->at(ordinal) = entry.slots[o]; // its hold goes with it
      entry.slots[o] = Slot{};
    }
    feed.first = (feed.first + 1) % feed.ring.size();
    --feed.count;
    // Under the lock: whoever counts what is in work sees the entry here or there.
    pace.admitted.store(ordinal + 1, std::memory_order_release);
  }
  stamp(*pace.entry, ordinal);
  pace.run->notify();
  return true;
}

// Ticks of a pace's clock that were all looked at by its head or its gate: INT64_MAX when no more come.
int64_t watermark(PaceRun& pace) {
  if (pace.plan->kind == plan::PaceKind::clock) {
    if (pace.ended.load(std::memory_order_acquire)) return INT64_MAX;
    return static_cast<int64_t>(pace.admitted.load(std::memory_order_acquire)) - 1;
  }
  return settled_through(*pace.parent, *pace.gate);
}

} // namespace

uint64_t completed(PaceRun& pace) {
  uint64_t lowest = UINT64_MAX;
  for (SegmentRun* segment : pace.segments) {
    uint64_t at = segment->progress.load(std::memory_order_acquire);
    for (const StepRun* step : segment->pending_steps)
      at = std::min(at, step->oldest_owed.load(std::memory_order_acquire));
    if (segment->device) {
      const std::lock_guard lock(segment->fences_mutex); // the head asks, and so does the gate
      while (segment->fences_done < at && at != UINT64_MAX && segment->fences[segment->fences_done & pace.mask].done())
        ++segment->fences_done;
      at = std::min(at, segment->fences_done);
    }
    lowest = std::min(lowest, at);
  }
  return lowest;
}

int64_t settled_through(PaceRun& pace, const StepRun& step) {
  for (;;) {
    // The watermark first: what is let in later than this look lies behind it.
    const int64_t mark = watermark(pace);
    int64_t waiting = INT64_MAX; // the oldest tick that is let in and not begun
    uint64_t admitted;
    if (pace.feed) {
      const std::lock_guard lock(pace.feed->mutex);
      if (pace.feed->count > 0) waiting = static_cast<int64_t>(pace.feed->at(0).info.index);
      admitted = pace.admitted.load(std::memory_order_acquire);
    } else {
      admitted = pace.admitted.load(std::memory_order_acquire);
    }
    const uint64_t settled = step.passed.load(std::memory_order_acquire);
    if (settled >= admitted) return std::min(mark, waiting == INT64_MAX ? mark : waiting - 1);
    const uint64_t index = pace.tick_index[settled & pace.mask].load(std::memory_order_acquire);
    // Still the same ordinal in work, so the place held its index all the time.
    if (step.passed.load(std::memory_order_acquire) == settled) return static_cast<int64_t>(index) - 1;
  }
}

bool passed_media(PaceRun& pace, const StepRun& step, int64_t media_ns) {
  const bool ended = pace.ended.load(std::memory_order_acquire);
  const uint64_t admitted = pace.admitted.load(std::memory_order_acquire);
  const uint64_t settled = step.passed.load(std::memory_order_acquire);
  if (ended && settled >= admitted) return true;
  if (settled == 0) return false;
  // Media time rises within a clock: a settled tick at or behind the asked time leaves nothing before it open.
  return step.passed_media_ns.load(std::memory_order_acquire) >= media_ns;
}

bool try_admit(PaceRun& pace) {
  if (pace.ended.load(std::memory_order_relaxed)) return false;
  return pace.plan->kind == plan::PaceKind::clock ? admit_clock_tick(pace) : admit_entry(pace);
}

} // namespace millrace::exec
