// The head of a pace: when a tick begins, what the sources gave for it, and when the window has room (semantics.md
// 1.1 to 1.6). Everything here is done by the segment that holds the head.
#include "exec/admission.h"

#include <algorithm>
#include <utility>

#include "exec/channel.h"
#include "exec/firing.h"
#include "exec/presence.h"
#include "exec/reader.h"
#include "exec/run_state.h"
#include "exec/single_writer.h"
#include "exec/source.h"
#include "exec/state.h"
#include "exec/step.h"
#include "exec/tell.h"
#include "plan/words.h"

namespace millrace::exec {

namespace {

// All clocks start together; sources say their rates once.
void begin(PaceRun& pace) {
  pace.start_ns = pace.run->begin_ns();
  for (SourceState& source : pace.sources) {
    source.rate = rate_of(*source.step);
    source.by_time = pace.clock->takes_what_is_due(pace.run->facts.handlers[source.step->plan->handler].facts);
  }
  tell_clock_began(pace);
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
  tell_clock_ended(pace);
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

// The first beat from the next one on that is due after this time. Of a fast clock more beats may have passed than
// could be counted one by one: strides that double, and then halve.
int64_t beat_after(const PaceRun& pace, int64_t time_ns) {
  const auto is_due = [&](int64_t beat) { return pace.start_ns + beat_ns(pace.clock->rate, beat) <= time_ns; };
  int64_t beat = pace.next_beat, stride = 1;
  while (is_due(beat + stride)) {
    beat += stride;
    stride *= 2;
  }
  for (; stride > 0; stride /= 2)
    if (is_due(beat + stride)) beat += stride;
  return is_due(beat) ? beat + 1 : beat;
}

// Finds the beat to run now. False where none is due; then due_ns says when to look again.
bool find_beat(PaceRun& pace, uint64_t ordinal) {
  const int64_t now = pace.run->now_ns();
  const auto due = [&](int64_t beat) { return pace.start_ns + beat_ns(pace.clock->rate, beat); };
  const auto pass_over = [&](int64_t until, SingleWriter<uint64_t>& counted) {
    if (until <= pace.next_beat) return;
    counted += static_cast<uint64_t>(until - pace.next_beat);
    pace.next_beat = until;
  };
  if (due(pace.next_beat) <= now) {
    if (window_full(pace, ordinal)) pass_over(beat_after(pace, now), pace.late);
  }
  if (due(pace.next_beat) <= now) {
    // Beats that came while the window was full, though it has room by now, were late all the same.
    const int64_t since = std::min(room_since_ns(pace, ordinal), now + 1);
    if (since > due(pace.next_beat)) pass_over(beat_after(pace, since - 1), pace.late);
    if (due(pace.next_beat) <= now) pass_over(beat_after(pace, now) - 1, pace.skipped); // the clock itself came late
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
      source.next_due_ns = due_after(*source.step, source.next_due_ns, pts_of(source.next, own_time), source.rate);
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

bool gives(const std::vector<Slot>& slots) {
  return std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.value; });
}

// The source whose values say the times of this clock's ticks; null where none has one for this tick.
SourceState* timing_source(PaceRun& pace) {
  for (SourceState& source : pace.sources) {
    const bool paces = pace.clock->driver == plan::kNone || pace.clock->driver == source.step->index;
    if (source.has_value && paces && source.rate.numerator > 0 && !source.by_time)
      return gives(source.value) ? &source : nullptr;
  }
  return nullptr;
}

// The tick's time is later than the last one's (8.9): one that is not, `from` a source's value, is replaced. False
// where no later time is left; that ends the run.
bool let_time_rise(PaceRun& pace, SourceState* from, mr_tick_info& info) {
  if (info.index == 0 || info.media_time_ns > pace.last_media_ns) return true;
  if (pace.last_media_ns == INT64_MAX) {
    SourceState& source = from ? *from : pace.sources.front();
    pace.run->fail(*source.step, info.index, "no media time is later than that of the last tick, the largest there is");
    return false;
  }
  if (from) note_replaced(*from->step);
  info.media_time_ns = pace.last_media_ns + 1;
  return true;
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

// What steps of other paces ask of a tick. Before `admitted`.
void tell_others(PaceRun& pace, uint64_t ordinal, const mr_tick_info& info) {
  pace.tick_index[ordinal & pace.mask].store(info.index, std::memory_order_relaxed);
  pace.tick_media_ns[ordinal & pace.mask].store(info.media_time_ns, std::memory_order_relaxed);
}

// When the head has to look again without being rung: at the next beat, or when take_live() said; else never.
void expect_next(PaceRun& pace) {
  if (pace.clock->mode == graph::ClockMode::realtime)
    pace.due_ns.store(pace.start_ns + beat_ns(pace.clock->rate, pace.next_beat), std::memory_order_relaxed);
  else if (!live_driver(pace))
    pace.due_ns.store(INT64_MAX, std::memory_order_relaxed);
}

// Out of line, as what few ticks do: it would take registers from all.
[[gnu::cold, gnu::noinline]] void measure_tick(PaceRun& pace, uint64_t ordinal, const mr_tick_info& info) {
  PaceRun::Latency& latency = pace.latency[ordinal & pace.mask];
  const int64_t due = info.deadline_ns ? pace.start_ns + info.media_time_ns : INT64_MAX;
  const int64_t now = pace.run->now_ns();
  latency.ordinal = ordinal;
  latency.from_ns = std::min({due, std::exchange(pace.asked_ns, INT64_MAX), now});
  uint32_t lanes = 0;
  for (const SegmentRun* segment : pace.segments) lanes += segment->plan->lane == ordinal % segment->plan->lanes;
  latency.segments_left.store(lanes, std::memory_order_release);
  pace.watch.note_begun(ordinal, now);
}

void publish_tick(PaceRun& pace, uint64_t ordinal, const mr_tick_info& info) {
  pace.infos[ordinal & pace.mask] = info;
  if (!pace.run->plan.channels.empty()) tell_others(pace, ordinal, info);
  if (pace.watch.is_due(ordinal)) [[unlikely]]
    measure_tick(pace, ordinal, info);
  if (pace.due_ns.load(std::memory_order_relaxed) != INT64_MAX) expect_next(pace);
  // Last, since a reader begins the tick on the stamp alone; one ring for the stamps and `admitted`.
  for (SourceState& source : pace.sources) {
    for (size_t o = 0; o < source.value.size(); ++o) source.step->outputs[o]->at(ordinal) = source.value[o];
    source.has_value = false;
    if (source.step->shared->wanted) source.step->shared->stamp(ordinal).store(ordinal + 1, std::memory_order_release);
  }
  pace.admitted.store(ordinal + 1, std::memory_order_release);
  pace.newest_media_ns.store(info.media_time_ns, std::memory_order_release); // before `ended`
  pace.run->notify();
}

bool must_end(PaceRun& pace, uint64_t ordinal) {
  const RunState& run = *pace.run;
  if (run.stopping.load(std::memory_order_relaxed) || run.failing.load(std::memory_order_relaxed)) return true;
  if (run.options.ticks_max && ordinal >= run.options.ticks_max) return true;
  if (ordinal >= pace.plan->ticks_max) return true;
  return run.options.duration_ns && run.now_ns() - pace.start_ns >= run.options.duration_ns;
}

// What a clock without sources does next (8.11).
enum class Lead { tick, wait, end };

bool leaders_ended(const PaceRun& pace) {
  return std::all_of(pace.leaders.begin(), pace.leaders.end(),
                     [](const PaceRun* leader) { return leader->ended.load(std::memory_order_acquire); });
}

// Under `realtime`: until the channels that feed it are closed and read. The gate of a reader that fires on values
// alone may never admit another tick, so the channels of such a reader need only be closed.
Lead follow_at_beats(PaceRun& pace) {
  if (!leaders_ended(pace)) return Lead::tick;
  for (ChannelRun* channel : pace.fed_by) {
    const StepRun& to = *pace.run->step_runs[channel->plan->to];
    const std::lock_guard lock(channel->mutex);
    const bool comes_again = to.pace == &pace || to.pace->feed->plan->every_tick;
    if (!channel->closed || (channel->count > 0 && comes_again)) return Lead::tick;
  }
  return Lead::end;
}

// Where it waits: by media times, so that it has the same ticks in every run.
Lead follow_in_time(PaceRun& pace, uint64_t ordinal) {
  bool over = leaders_ended(pace); // before the look: then no later tick of theirs follows
  for (const PaceRun* leader : pace.leaders) {
    const int64_t newest = leader->newest_media_ns.load(std::memory_order_acquire);
    if (newest != INT64_MIN && (ordinal == 0 || newest > pace.last_media_ns)) return Lead::tick;
  }
  for (ChannelRun* channel : pace.fed_by) {
    if (channel->plan->kind != plan::ChannelKind::queue || channel->plan->full != graph::Full::block) continue;
    // A value that waits for a tick of its own, and for none of those that are there already.
    const bool taken = ordinal == 0 || passed_by(*pace.run->step_runs[channel->plan->to]).has(pace.last_media_ns);
    const std::lock_guard lock(channel->mutex);
    if (taken && channel->count > 0) return Lead::tick;
    over = over && taken && channel->closed;
  }
  return over ? Lead::end : Lead::wait;
}

Lead follow(PaceRun& pace, uint64_t ordinal) {
  if (pace.leaders.empty()) return Lead::tick;
  return pace.clock->realtime() ? follow_at_beats(pace) : follow_in_time(pace, ordinal);
}

// Whether the clock, which others hold for as long as the plan says, keeps the rate that says how many ticks that is
// (8.3). By media times alone.
bool keeps_rate(PaceRun& pace, uint64_t ordinal, int64_t media_ns) {
  std::vector<int64_t>& recent = pace.recent_media_ns;
  if (recent.empty()) return true;
  recent[ordinal % recent.size()] = media_ns;
  const plan::Clock& clock = *pace.clock;
  const auto since = [&](uint64_t ticks) { return media_ns - recent[(ordinal - ticks) % recent.size()]; };
  const bool crowds =
      clock.crowd_ticks > 1 && ordinal + 1 >= clock.crowd_ticks && since(clock.crowd_ticks - 1) < clock.held_ns;
  const bool pauses = clock.owed_ticks > 0 && ordinal >= clock.owed_ticks &&
                      since(clock.owed_ticks) > beat_ns(clock.rate, clock.owed_ticks + 1) + 1;
  if (!crowds && !pauses) return true;
  const auto ms = [](int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; };
  const std::string name = name_of(clock);
  const std::string what = crowds ? std::to_string(clock.crowd_ticks) + " ticks came within " +
                                        ms(since(clock.crowd_ticks - 1)) + ", and clocks that wait for it hold " +
                                        ms(clock.held_ns) + " of them"
                                  : std::to_string(clock.owed_ticks + 1) + " ticks, whose results may be owed, took " +
                                        ms(since(clock.owed_ticks)) + ", longer than its rate says";
  pace.run->fail(
      Error{611,
            "clock \"" + name + "\" does not keep its rate at tick " + std::to_string(ordinal) + ": " + what,
            {},
            {},
            "",
            crowds ? "a higher rate:, or in_flight: above " + std::to_string(clock.crowd_ticks) : "a lower rate:"},
      pace.plan->clock, ordinal);
  return false;
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
  info.media_time_ns = pts_of(driver.value, now - pace.start_ns);
  if (!let_time_rise(pace, gives(driver.value) ? &driver : nullptr, info)) return false;
  if (period > 0) info.deadline_ns = now + period;
  for (SourceState& source : pace.sources)
    if (&source != &driver)
      ask_at_beat(source, info, ordinal, std::min(info.media_time_ns, INT64_MAX - period) + period);
  return true;
}

[[gnu::cold, gnu::noinline]] void note_asked(PaceRun& pace) { pace.asked_ns = pace.run->now_ns(); }

// `free`, and `source` where the source can wait: each tick takes the next value of every source.
bool fill_in_turn(PaceRun& pace, mr_tick_info& info, uint64_t ordinal) {
  if (window_full(pace, ordinal)) return false;
  info.media_time_ns = beat_ns(nominal_rate(*pace.clock), static_cast<int64_t>(ordinal));
  retire(pace, ordinal);
  if (pace.watch.is_due(ordinal)) [[unlikely]]
    note_asked(pace);
  if (!ask_for_next(pace, info, ordinal)) return false;
  SourceState* const timing = timing_source(pace);
  if (timing) info.media_time_ns = pts_of(timing->value, info.media_time_ns);
  return let_time_rise(pace, timing, info);
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
  const Lead lead = over ? Lead::end : follow(pace, ordinal);
  if (lead == Lead::end) end(pace);
  if (lead != Lead::tick) return false;
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
  if (!keeps_rate(pace, ordinal, info.media_time_ns)) {
    leave_calls(pace);
    end(pace);
    return false;
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
    tell_others(pace, ordinal, entry.info);
    pace.latency[ordinal & pace.mask].ordinal = entry.from_ns == kNotMeasured ? UINT64_MAX : ordinal;
    pace.latency[ordinal & pace.mask].from_ns = entry.from_ns;
    if (!entry.has_value()) --feed.empties;
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

Passed passed_by(const StepRun& step) {
  PaceRun& pace = *step.pace;
  for (;;) {
    // The end and the gate first: what is let in later than this look lies after it.
    const Passed before =
        pace.gate ? passed_by(*pace.gate) : Passed{INT64_MIN, pace.ended.load(std::memory_order_acquire)};
    int64_t waiting = INT64_MAX; // the oldest tick that is let in and not begun
    uint64_t admitted;
    if (pace.feed) {
      const std::lock_guard lock(pace.feed->mutex);
      if (pace.feed->count > 0) waiting = pace.feed->at(0).info.media_time_ns;
      admitted = pace.admitted.load(std::memory_order_acquire);
    } else {
      admitted = pace.admitted.load(std::memory_order_acquire);
    }
    const uint64_t passed = step.passed.load(std::memory_order_acquire);
    if (passed >= admitted) {
      if (waiting != INT64_MAX) return {waiting - 1, false};
      // Media time rises within a clock: so nothing is open after the last tick that was dealt with.
      return {std::max(before.through_ns, step.passed_media_ns.load(std::memory_order_acquire)), before.ended};
    }
    const int64_t next = pace.tick_media_ns[passed & pace.mask].load(std::memory_order_acquire);
    // Still the same ordinal in work, so the place held its time all the while.
    if (step.passed.load(std::memory_order_acquire) == passed) return {next - 1, false};
  }
}

bool try_admit(PaceRun& pace) {
  if (pace.ended.load(std::memory_order_relaxed)) return false;
  if (pace.plan->kind == plan::PaceKind::behind) return admit_entry(pace);
  return !pace.run->holding.load(std::memory_order_relaxed) && admit_clock_tick(pace);
}

} // namespace millrace::exec
