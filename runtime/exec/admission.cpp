// The head of a pace: when a tick begins, what the sources gave for it, and when the window has room (semantics.md
// 1.1 to 1.6). Everything here is done by the segment that holds the head.
#include <algorithm>

#include "exec/reader.h"
#include "exec/source.h"
#include "exec/state.h"

namespace millrace::exec {

namespace {

// All clocks start together; sources say their rates once.
void begin(PaceRun& pace) {
  pace.start_ns = pace.run->begin_ns();
  for (SourceState& source : pace.sources) {
    source.rate = rate_of(*source.step);
    source.by_time = pace.clock->takes_what_is_due(pace.run->facts.handlers[source.step->plan->handler].facts);
  }
}

// Admits no more. Until the readers have left their handlers, which drain after this, the head comes here again.
void end(PaceRun& pace) {
  pace.ending.store(true, std::memory_order_relaxed);
  bool left = true;
  for (SourceState& source : pace.sources) left = (!source.reader || source.reader->leave()) && left;
  if (!left) {
    pace.due_ns.store(pace.run->now_ns() + kAskAgainNs, std::memory_order_relaxed);
    return;
  }
  pace.due_ns.store(INT64_MAX, std::memory_order_relaxed);
  pace.ended.store(true, std::memory_order_release);
  pace.run->notify();
}

// Slots whose ordinals have left the window let go of their blocks. Once an ordinal, however often it is tried.
void retire(PaceRun& pace, uint64_t ordinal) {
  if (pace.retired > ordinal) return;
  pace.retired = ordinal + 1;
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

// The newest value that is due by the tick's time, waited for; empty where none is. The one after it is kept.
Answer take_due(SourceState& source, const mr_tick_info& info, uint64_t ordinal) {
  for (;;) {
    if (!source.has_next) {
      if (source.ended) break;
      const int64_t own_time = beat_ns(source.rate, static_cast<int64_t>(source.index));
      const Answer answer = ask(source, info, ordinal, source.next);
      if (answer == Answer::not_yet) return answer;
      source.ended = answer == Answer::end;
      if (source.ended) break;
      source.has_next = true;
      source.next_due_ns = due_after(source.next_due_ns, pts_of(source.next, own_time), source.rate);
    }
    if (source.next_due_ns > info.media_time_ns) break;
    take_next(source);
  }
  if (!source.has_value) clear(source.value, source.ended && !source.has_next ? Cause::end : Cause::not_yet);
  return Answer::value;
}

// `free` and `source`: every source gives its next value, waited for. False while one has none yet.
bool ask_for_next(PaceRun& pace, const mr_tick_info& info, uint64_t ordinal) {
  bool waiting = false, ask_again = false;
  for (SourceState& source : pace.sources) {
    if (source.by_time) {
      const bool silent = take_due(source, info, ordinal) == Answer::not_yet;
      waiting = waiting || silent;
      ask_again = ask_again || (silent && !source.reader);
      continue;
    }
    if (source.ended || source.has_value) continue;
    const Answer answer = ask(source, info, ordinal, source.value);
    source.has_value = answer == Answer::value;
    source.ended = answer == Answer::end;
    waiting = waiting || answer == Answer::not_yet;
    ask_again = ask_again || (answer == Answer::not_yet && !source.reader); // a reader tells when it has something
    if (source.ended) clear(source.value, Cause::end);
  }
  if (waiting) pace.due_ns.store(ask_again ? pace.run->now_ns() + kAskAgainNs : INT64_MAX, std::memory_order_relaxed);
  return !waiting;
}

// The source that creates the ticks of a live clock, where it has a beat of its own or a thread that reads it.
SourceState* live_driver(PaceRun& pace) {
  if (!pace.clock->live) return nullptr;
  for (SourceState& source : pace.sources)
    if (source.step->index == pace.clock->driver && (source.reader || source.rate.numerator > 0)) return &source;
  return nullptr;
}

void drop_late(PaceRun& pace, SourceState& driver) {
  if (!driver.has_value) return;
  ++pace.late;
  release_all(driver.value);
  driver.has_value = false;
}

// The newest frame of a live source, which cannot be made to wait: those that come while the window is full, or that a
// newer one overtakes, are late. One that does not block is asked at its own beats. False where there is none.
bool take_live(PaceRun& pace, SourceState& driver, const mr_tick_info& info, uint64_t ordinal) {
  const int64_t now = pace.run->now_ns();
  int64_t look_again = INT64_MAX; // a reader tells
  // The ring has room for a full window or for one frame in the head's hand.
  const bool full = window_full(pace, ordinal);
  if (!full) retire(pace, ordinal);
  if (driver.reader) {
    if (full) pace.late += driver.reader->drop_all();
    while (!full && driver.reader->has_due(INT64_MAX)) {
      drop_late(pace, driver);
      driver.has_value = driver.reader->take(driver.value) == Answer::value;
    }
    pace.late += driver.reader->superseded_by(INT64_MIN);
    driver.ended = driver.reader->at_end();
  } else {
    const auto due = [&] { return pace.start_ns + beat_ns(driver.rate, pace.next_beat); };
    bool silent = false;
    while (due() <= now && !driver.ended && !silent) {
      const Answer answer = ask(driver, info, ordinal, driver.next);
      driver.ended = answer == Answer::end;
      silent = answer == Answer::not_yet;
      if (answer != Answer::value) continue;
      drop_late(pace, driver);
      std::swap(driver.value, driver.next);
      driver.has_value = true;
      ++pace.next_beat;
    }
    look_again = silent ? now + kAskAgainNs : due();
  }
  if (full) drop_late(pace, driver);
  pace.due_ns.store(look_again, std::memory_order_relaxed);
  return driver.has_value;
}

int64_t media_time(const PaceRun& pace, const mr_tick_info& info) {
  for (const SourceState& source : pace.sources) {
    const bool paces = pace.clock->driver == plan::kNone || pace.clock->driver == source.step->index;
    if (source.has_value && paces && source.rate.numerator > 0 && !source.by_time)
      return pts_of(source.value, info.media_time_ns);
  }
  return info.media_time_ns;
}

// What was asked for since the last tick of this clock takes effect on this one; a script's changes on their own.
// Where the sources are `asked` already, what concerns one of them waits for the next tick, and whatever waits with it:
// a request takes effect as a whole, and requests in their order.
void admit_changes(PaceRun& pace, uint64_t index, bool asked) {
  RunState& run = *pace.run;
  const std::lock_guard lock(run.changes_mutex);
  const auto is_late = [&](const RunState::Change& change) {
    return change.at_index == UINT64_MAX &&
           std::any_of(pace.sources.begin(), pace.sources.end(),
                       [&](const SourceState& source) { return source.step->plan->handler == change.handler; });
  };
  if (asked && std::any_of(run.requested.begin(), run.requested.end(), is_late)) return;
  std::vector<RunState::Change> others;
  for (RunState::Change& change : run.requested) {
    const bool mine = run.plan.handlers[change.handler].clock == pace.plan->clock;
    if (!mine || (change.at_index != UINT64_MAX && change.at_index > index)) {
      others.push_back(std::move(change));
      continue;
    }
    change.at_index = index;
    run.changes.push_back(std::move(change));
  }
  run.requested = std::move(others);
  run.changes_admitted.store(run.changes.size(), std::memory_order_release);
  run.changes_waiting.store(!run.requested.empty(), std::memory_order_relaxed);
}

// When the head has to look again without being rung: at the next beat; under a reader when the tick's deadline
// decides.
void expect_next(PaceRun& pace, const mr_tick_info& info) {
  int64_t next = INT64_MAX;
  if (pace.clock->mode == graph::ClockMode::realtime)
    next = pace.start_ns + beat_ns(pace.clock->rate, pace.next_beat);
  else if (info.deadline_ns)
    next = std::min(pace.due_ns.load(std::memory_order_relaxed), info.deadline_ns);
  pace.due_ns.store(next, std::memory_order_relaxed);
}

void publish_tick(PaceRun& pace, uint64_t ordinal, const mr_tick_info& info) {
  pace.infos[ordinal & pace.mask] = info;
  if (!pace.run->plan.channels.empty())
    pace.tick_index[ordinal & pace.mask].store(info.index, std::memory_order_relaxed);
  if ((ordinal & kLatencySampleMask) == 0) {
    PaceRun::Latency& latency = pace.latency[ordinal & pace.mask];
    const int64_t due = info.deadline_ns ? pace.start_ns + info.media_time_ns : INT64_MAX;
    latency.from_ns = std::min(due, pace.run->now_ns());
    uint32_t lanes = 0;
    for (const SegmentRun* segment : pace.segments) lanes += segment->plan->lane == ordinal % segment->plan->lanes;
    latency.segments_left.store(lanes, std::memory_order_release);
  }
  if (pace.due_ns.load(std::memory_order_relaxed) != INT64_MAX || info.deadline_ns) expect_next(pace, info);
  // Last, since a reader begins the tick on the stamp alone; one ring for the stamps and `admitted`.
  for (SourceState& source : pace.sources) {
    for (size_t o = 0; o < source.value.size(); ++o) source.step->outputs[o]->at(ordinal) = source.value[o];
    source.has_value = false;
    if (source.step->shared->wanted) source.step->shared->stamp(ordinal).store(ordinal + 1, std::memory_order_release);
  }
  pace.admitted.store(ordinal + 1, std::memory_order_release);
  pace.run->notify();
}

bool must_end(PaceRun& pace, uint64_t ordinal) {
  const RunState& run = *pace.run;
  if (run.stopping.load(std::memory_order_relaxed) || run.failing.load(std::memory_order_relaxed)) return true;
  if (run.options.ticks_max && ordinal >= run.options.ticks_max) return true;
  if (ordinal >= pace.plan->ticks_max) return true;
  return run.options.duration_ns && run.now_ns() - pace.start_ns >= run.options.duration_ns;
}

// Whether a clock without sources has nothing more to come: the clocks that feed it have ended, and what they left is
// read. Who reads behind a gate that waits for values may never be let in again, so its channels are not waited for.
bool fed_to_the_end(PaceRun& pace) {
  RunState& run = *pace.run;
  bool fed = false;
  for (const auto& channel : run.channels) {
    const StepRun& from = *run.step_runs[channel->plan->from];
    const StepRun& to = *run.step_runs[channel->plan->to];
    if (to.pace->clock != pace.clock || from.pace->clock == pace.clock) continue;
    fed = true;
    const std::lock_guard lock(channel->mutex);
    const bool comes_again = to.pace == &pace || to.pace->feed->plan->every_tick;
    if (!channel->closed || (channel->count > 0 && comes_again)) return false;
  }
  return fed;
}

// `realtime`: every source settles at the beat.
bool fill_at_beat(PaceRun& pace, mr_tick_info& info, uint64_t ordinal) {
  if (!find_beat(pace, ordinal)) return false;
  const int64_t until = beat_ns(pace.clock->rate, pace.next_beat + 1);
  info.media_time_ns = beat_ns(pace.clock->rate, pace.next_beat);
  info.deadline_ns = pace.start_ns + until;
  retire(pace, ordinal);
  for (SourceState& source : pace.sources) ask_at_beat(source, info, ordinal, until);
  if (!sources_ended(pace)) ++pace.next_beat;
  return true;
}

// A live source creates the ticks; other sources settle with what they have by then.
bool fill_live(PaceRun& pace, SourceState& driver, mr_tick_info& info, uint64_t ordinal) {
  if (!take_live(pace, driver, info, ordinal)) return driver.ended;
  const int64_t now = pace.run->now_ns();
  const int64_t period = driver.rate.numerator > 0 ? beat_ns(driver.rate, 1) : 0;
  info.media_time_ns = std::max(pts_of(driver.value, now - pace.start_ns), pace.last_media_ns + 1);
  if (period > 0) info.deadline_ns = now + period;
  for (SourceState& source : pace.sources)
    if (&source != &driver) ask_at_beat(source, info, ordinal, info.media_time_ns + period);
  return true;
}

// `free`, and `source` where the source can wait: each tick takes the next value of every source.
bool fill_in_turn(PaceRun& pace, mr_tick_info& info, uint64_t ordinal) {
  if (window_full(pace, ordinal)) return false;
  info.media_time_ns = beat_ns(nominal_rate(*pace.clock), static_cast<int64_t>(ordinal));
  retire(pace, ordinal);
  if (!ask_for_next(pace, info, ordinal)) return false;
  info.media_time_ns = std::max(media_time(pace, info), pace.last_media_ns + 1);
  return true;
}

// No tick follows at once, so nobody is to be watched in a call that has long returned.
void leave_calls(PaceRun& pace) {
  for (SourceState& source : pace.sources) {
    std::atomic<const StepRun*>& inside = source.step->segment->inside;
    if (!source.reader && inside.load(std::memory_order_relaxed) == source.step)
      inside.store(nullptr, std::memory_order_relaxed);
  }
}

bool admit_clock_tick(PaceRun& pace) {
  const uint64_t ordinal = pace.admitted.load(std::memory_order_relaxed);
  if (pace.start_ns < 0) begin(pace);
  const bool over = pace.ending.load(std::memory_order_relaxed) || must_end(pace, ordinal);
  if (over || (pace.sources.empty() && !pace.plan->generated && fed_to_the_end(pace))) {
    end(pace);
    return false;
  }
  // Before the sources are asked: they belong to the tick.
  if (pace.run->changes_waiting.load(std::memory_order_relaxed)) admit_changes(pace, ordinal, false);
  mr_tick_info info{};
  info.clock = pace.plan->clock;
  info.index = ordinal;
  info.trace_id = (uint64_t{pace.plan->clock} << 48) + ordinal;
  SourceState* const driver = live_driver(pace);
  const bool filled = pace.clock->mode == graph::ClockMode::realtime ? fill_at_beat(pace, info, ordinal)
                      : driver                                       ? fill_live(pace, *driver, info, ordinal)
                                                                     : fill_in_turn(pace, info, ordinal);
  if (!filled || sources_ended(pace)) {
    leave_calls(pace);
    if (filled) end(pace);
    return false;
  }
  // And behind them: whoever changes a parameter and then pushes a value finds it changed for that value.
  if (pace.run->changes_waiting.load(std::memory_order_relaxed)) admit_changes(pace, ordinal, true);
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
    pace.latency[ordinal & pace.mask].from_ns = entry.from_ns;
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

bool waits_for_device(SegmentRun& segment) {
  if (!segment.device || segment.done.load()) return false;
  completed(*segment.pace); // looks how far its device is
  const std::lock_guard lock(segment.fences_mutex);
  return segment.fences_done < segment.progress.load(std::memory_order_acquire);
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
  if (pace.plan->kind == plan::PaceKind::behind) return admit_entry(pace);
  return !pace.run->holding.load(std::memory_order_relaxed) && admit_clock_tick(pace);
}

} // namespace millrace::exec
