// Decides when a clock's next tick is, and takes its sources' values for it; see fill_tick.h.
#include "exec/fill_tick.h"

#include <algorithm>
#include <utility>

#include "exec/reader.h"
#include "exec/settle.h"
#include "exec/window.h"
#include "observe/single_writer.h"
#include "plan/pace.h"

namespace millrace::exec {

namespace {

// The first beat, from the next one on, that is due after this time. With a fast clock, more beats may have passed than
// can be counted one by one, so the search doubles its stride and then halves it.
int64_t beat_after(const PaceRun& pace, const graph::Rational& rate, int64_t time_ns) {
  const auto is_due = [&](int64_t beat) { return pace.clock->start_ns + beat_ns(rate, beat) <= time_ns; };
  int64_t beat = pace.clock->next_beat, stride = 1;
  while (is_due(beat + stride)) {
    beat += stride;
    stride *= 2;
  }
  for (; stride > 0; stride /= 2)
    if (is_due(beat + stride)) beat += stride;
  return is_due(beat) ? beat + 1 : beat;
}

// Finds the beat to run now. False if none is due; then due_ns says when to look again.
bool find_beat(PaceRun& pace, uint64_t ordinal) {
  const int64_t now = pace.run->now_ns();
  const graph::Rational& rate = pace.clock->plan->rate;
  const auto due = [&](int64_t beat) { return pace.clock->start_ns + beat_ns(rate, beat); };
  const auto pass_over = [&](int64_t until, SingleWriter<uint64_t>& counted) {
    if (until <= pace.clock->next_beat) return;
    counted += static_cast<uint64_t>(until - pace.clock->next_beat);
    pace.clock->next_beat = until;
  };
  if (due(pace.clock->next_beat) <= now) {
    if (window_full(pace, ordinal)) pass_over(beat_after(pace, rate, now), pace.clock->late);
  }
  if (due(pace.clock->next_beat) <= now) {
    // Beats that came due while the window was full are late, even if it has room by now.
    const int64_t since = std::min(room_since_ns(pace, ordinal), now + 1);
    if (since > due(pace.clock->next_beat)) pass_over(beat_after(pace, rate, since - 1), pace.clock->late);
    if (due(pace.clock->next_beat) <= now)
      pass_over(beat_after(pace, rate, now) - 1, pace.clock->skipped); // the clock itself came late
  }
  expect_beat(pace);
  return due(pace.clock->next_beat) <= now;
}

// Takes the value that the tick shows of those that are due by its time; empty if none is due. Answers not_yet until
// the source has given a later value, which is kept in `next`, or has ended.
Answer take_when_due(SourceState& source, const graph::Rational& rate, const mr_tick_info& info, uint64_t ordinal) {
  const BeatChoice choice = source.each_has_beat ? choice_at(rate, static_cast<int64_t>(ordinal)) : BeatChoice{};
  for (;;) {
    if (!source.has_next) {
      if (source.ended) break;
      const int64_t own_time = beat_ns(source.rate, static_cast<int64_t>(source.index));
      const Answer answer = ask(source, info, ordinal, source.next);
      if (answer == Answer::not_yet) return answer;
      source.ended = answer == Answer::end;
      if (source.ended) break;
      source.has_next = true;
      const int64_t pts = later_by(pts_of(source.next, own_time), source.base_ns);
      source.next_due_ns = due_of(*source.step, source.due_times, pts);
    }
    if (source.next_due_ns > info.media_time_ns) break;
    if (source.has_value && source.value_due_ns > choice.kept_after_ns) break;
    take_next(source);
  }
  if (!source.has_value) clear(source.value, source.ended && !source.has_next ? Cause::end : Cause::not_yet);
  return Answer::value;
}

// `free` and `source`: takes the next value of every source, or the newest that is due if it is `by_time`. False while
// a source has none yet. Sources that follow are asked once no other is waited for.
bool ask_for_next(PaceRun& pace, const mr_tick_info& info, uint64_t ordinal) {
  bool waiting = false, ask_again = false;
  for (SourceState& source : pace.clock->sources) {
    if (source.follows) continue;
    if (source.by_time) {
      const bool silent = take_when_due(source, pace.clock->plan->rate, info, ordinal) == Answer::not_yet;
      waiting = waiting || silent;
      ask_again = ask_again || (silent && !source.reader);
      continue;
    }
    if (source.ended || source.has_value) continue;
    const Answer answer = ask(source, info, ordinal, source.value);
    source.has_value = answer == Answer::value;
    source.ended = answer == Answer::end;
    waiting = waiting || answer == Answer::not_yet;
    ask_again = ask_again || (answer == Answer::not_yet && !source.reader); // a reader notifies when it has something
    if (source.ended) clear(source.value, Cause::end);
  }
  if (waiting) pace.due_ns.store(ask_again ? pace.run->now_ns() + kAskAgainNs : INT64_MAX, std::memory_order_relaxed);
  for (SourceState& source : pace.clock->sources)
    if (source.follows && !waiting) ask_at_beat(source, info, ordinal, {});
  return !waiting;
}

void drop_late(PaceRun& pace, SourceState& driver) {
  if (!driver.has_value) return;
  ++pace.clock->late;
  release_all(driver.value);
  driver.has_value = false;
}

// Takes the newest frame of a live source. A live source cannot be made to wait, so frames that come while the window
// is full, or that a newer frame overtakes, are late. A source that does not block is asked at its own beats. False if
// there is no frame.
bool take_live(PaceRun& pace, SourceState& driver, const mr_tick_info& info, uint64_t ordinal) {
  const int64_t now = pace.run->now_ns();
  const uint64_t late_before = pace.clock->late;
  int64_t look_again = INT64_MAX;                         // a reader notifies
  if (driver.reader) pace.idle_until_ns.store(INT64_MAX); // before the look: it sets this back after the next value
  // Besides what is read ahead, the ring has room for a full window, or for one tick less and a frame that the head
  // holds.
  const bool full = window_full(pace, ordinal);
  if (!full) retire(pace, ordinal);
  if (driver.reader) {
    if (full) pace.clock->late += driver.reader->drop_all();
    while (!full && driver.reader->has_due(INT64_MAX)) {
      drop_late(pace, driver);
      driver.has_value = driver.reader->take(driver.value) == Answer::value;
    }
    pace.clock->late += driver.reader->superseded_by(INT64_MIN);
    driver.ended = driver.reader->at_end();
  } else {
    const auto due = [&] { return pace.clock->start_ns + beat_ns(driver.rate, pace.clock->next_beat); };
    bool silent = false;
    while (due() <= now && !driver.ended && !silent) {
      const Answer answer = ask(driver, info, ordinal, driver.next);
      driver.ended = answer == Answer::end;
      silent = answer == Answer::not_yet;
      if (answer != Answer::value) continue;
      drop_late(pace, driver);
      std::swap(driver.value, driver.next);
      driver.has_value = true;
      ++pace.clock->next_beat;
    }
    look_again = silent ? now + kAskAgainNs : due();
  }
  if (full) drop_late(pace, driver);
  if (driver.has_value || pace.clock->late != late_before) await_value(pace);
  pace.due_ns.store(look_again, std::memory_order_relaxed);
  if (driver.ended) // the head ends its pace, perhaps after a tick
    pace.idle_until_ns.store(INT64_MIN, std::memory_order_relaxed);
  else if (!driver.reader)
    pace.idle_until_ns.store(look_again, std::memory_order_relaxed);
  return driver.has_value;
}

bool gives(const std::vector<Slot>& slots) {
  return std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.value; });
}

// The source whose values set the times of this clock's ticks; null if none has a value for this tick.
SourceState* timing_source(PaceRun& pace) {
  for (SourceState& source : pace.clock->sources) {
    const bool paces = pace.clock->plan->driver == plan::kNone || pace.clock->plan->driver == source.step->index;
    if (source.has_value && paces && source.rate.numerator > 0 && !source.by_time)
      return gives(source.value) ? &source : nullptr;
  }
  return nullptr;
}

// Makes sure that the tick's time is later than the last tick's (8.9). A time that is not becomes the last one + 1 ns;
// if it came `from` a source, the source counts it. False if no later time is left; that ends the run.
bool let_time_rise(PaceRun& pace, SourceState* from, mr_tick_info& info) {
  if (info.index == 0 || info.media_time_ns > pace.clock->last_media_ns) return true;
  if (pace.clock->last_media_ns == INT64_MAX) {
    SourceState& source = from ? *from : pace.clock->sources.front();
    pace.run->fail(*source.step, info.index, "no media time is later than that of the last tick, the largest there is");
    return false;
  }
  if (from) record_replaced(*from->step);
  info.media_time_ns = pace.clock->last_media_ns + 1;
  return true;
}

// The media time of a tick at this time of its source. A source that has begun anew may count from its beginning again:
// then the first tick of the epoch follows the last tick, and later ones go on from there.
int64_t media_time_of(PaceRun& pace, int64_t source_ns) {
  ClockRun& clock = *pace.clock;
  if (clock.media_shift_ns == kShiftUnknown) [[unlikely]]
    clock.media_shift_ns =
        source_ns > clock.last_media_ns ? 0 : later_by(next_media_ns(pace), -std::max(source_ns, -INT64_MAX));
  return later_by(source_ns, clock.media_shift_ns);
}

// `realtime`: every source settles at the beat.
bool fill_at_beat(PaceRun& pace, mr_tick_info& info, uint64_t ordinal) {
  if (!find_beat(pace, ordinal)) return false;
  ClockRun& clock = *pace.clock;
  const BeatChoice choice = choice_at(clock.plan->rate, clock.next_beat);
  info.media_time_ns = beat_ns(clock.plan->rate, clock.next_beat);
  info.deadline_ns = clock.start_ns + choice.until_ns;
  retire(pace, ordinal);
  // After a beat that was missed the newest value counts, else all later ones would be late too.
  const bool in_turn = clock.next_beat == clock.beat_before + 1;
  const BeatChoice newest{choice.until_ns}, catch_up{choice.until_ns, INT64_MAX, choice.next_kept_after_ns};
  for (SourceState& source : clock.sources)
    ask_at_beat(source, info, ordinal, !source.each_has_beat ? newest : in_turn ? choice : catch_up);
  if (sources_ended(pace)) return true;
  clock.beat_before = clock.next_beat++;
  return true;
}

// A live source creates the ticks; other sources settle with what they have by then.
bool fill_live(PaceRun& pace, SourceState& driver, mr_tick_info& info, uint64_t ordinal) {
  if (!take_live(pace, driver, info, ordinal)) return driver.ended;
  const int64_t now = pace.run->now_ns();
  const int64_t period = driver.rate.numerator > 0 ? beat_ns(driver.rate, 1) : 0;
  const int64_t since_start = now - pace.clock->start_ns;
  info.media_time_ns = media_time_of(pace, pts_of(driver.value, since_start));
  if (!let_time_rise(pace, gives(driver.value) ? &driver : nullptr, info)) return false;
  if (period > 0) info.deadline_ns = now + period;
  for (SourceState& source : pace.clock->sources)
    if (&source != &driver)
      ask_at_beat(source, info, ordinal, BeatChoice{std::min(info.media_time_ns, INT64_MAX - period) + period});
  return true;
}

[[gnu::cold, gnu::noinline]] void record_asked(PaceRun& pace) { pace.asked_ns = pace.run->now_ns(); }

// `free`, and `source` if the source can wait: each tick takes the next value of every source.
bool fill_in_turn(PaceRun& pace, mr_tick_info& info, uint64_t ordinal) {
  if (window_full(pace, ordinal)) return false;
  info.media_time_ns = beat_ns(nominal_rate(*pace.clock->plan), static_cast<int64_t>(ordinal));
  retire(pace, ordinal);
  if (pace.watch.is_due(ordinal)) [[unlikely]]
    record_asked(pace);
  if (!ask_for_next(pace, info, ordinal)) return false;
  SourceState* const timing = timing_source(pace);
  if (timing) info.media_time_ns = media_time_of(pace, pts_of(timing->value, info.media_time_ns));
  return let_time_rise(pace, timing, info);
}

} // namespace

void await_value(PaceRun& pace) {
  const SourceState* const driver = live_driver(pace);
  const bool has_rate = driver && driver->rate.numerator > 0;
  const int64_t stalls_at = has_rate ? later_by(pace.run->now_ns(), beat_ns(driver->rate, 3)) : INT64_MAX;
  pace.clock->stalls_at_ns.store(stalls_at, std::memory_order_relaxed);
}

void expect_beat(PaceRun& pace) {
  const int64_t due = pace.clock->start_ns + beat_ns(pace.clock->plan->rate, pace.clock->next_beat);
  pace.due_ns.store(due, std::memory_order_relaxed);
  pace.idle_until_ns.store(pace.leaders.empty() ? due : INT64_MIN, std::memory_order_relaxed);
}

bool sources_ended(const PaceRun& pace) {
  if (pace.clock->sources.empty()) return false;
  bool all = true;
  for (const SourceState& source : pace.clock->sources) {
    if (source.follows) continue; // it ends with the others
    const bool over = source.ended && !source.has_next && !source.has_value;
    if (source.step->index == pace.clock->plan->driver && over) return true;
    all = all && over;
  }
  return all;
}

SourceState* live_driver(PaceRun& pace) {
  if (!pace.clock->plan->live) return nullptr;
  for (SourceState& source : pace.clock->sources)
    if (source.step->index == pace.clock->plan->driver && (source.reader || source.rate.numerator > 0)) return &source;
  return nullptr;
}

void skip_beats(PaceRun& pace) {
  ClockRun& clock = *pace.clock;
  const SourceState* const driver = live_driver(pace);
  const graph::Rational& rate = driver ? driver->rate : clock.plan->rate;
  if ((clock.plan->mode != graph::ClockMode::realtime && !driver) || rate.numerator == 0) return;
  const int64_t now = pace.run->now_ns();
  if (clock.start_ns + beat_ns(rate, clock.next_beat) < now) clock.next_beat = beat_after(pace, rate, now - 1);
}

int64_t next_media_ns(const PaceRun& pace) {
  const ClockRun& clock = *pace.clock;
  if (clock.plan->mode == graph::ClockMode::realtime) return beat_ns(clock.plan->rate, clock.next_beat);
  if (clock.plan->live) return pace.run->now_ns() - clock.start_ns;
  return clock.last_media_ns == INT64_MIN ? 0 : later_by(clock.last_media_ns, beat_ns(nominal_rate(*clock.plan), 1));
}

bool fill_tick(PaceRun& pace, mr_tick_info& info, uint64_t ordinal) {
  if (pace.clock->plan->mode == graph::ClockMode::realtime) return fill_at_beat(pace, info, ordinal);
  if (SourceState* const driver = live_driver(pace)) return fill_live(pace, *driver, info, ordinal);
  return fill_in_turn(pace, info, ordinal);
}

} // namespace millrace::exec
