// The head of a pace: when a tick begins and when a clock ends (semantics.md 1.1 to 1.6). Everything here runs on the
// thread that has claimed the head's segment.
#include "exec/admission.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "exec/change.h"
#include "exec/feeds.h"
#include "exec/fill_tick.h"
#include "exec/firing.h"
#include "exec/group.h"
#include "exec/live_changes.h"
#include "exec/param_values.h"
#include "exec/reader.h"
#include "exec/run_log.h"
#include "exec/run_options.h"
#include "exec/seats.h"
#include "exec/settle.h"
#include "exec/stream_epochs.h"
#include "exec/stream_life.h"
#include "exec/window.h"
#include "observe/error_codes.h"
#include "plan/format_text.h"
#include "plan/pace.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// All clocks start together; sources say their rates once. False before a start that was given: the head looks again
// then. A run that ends before its start begins at once, because only clocks that have begun end.
bool begin(PaceRun& pace) {
  const RunState& run = *pace.run;
  const int64_t start = pace.run->begin_ns();
  const bool over = run.stopping.load(std::memory_order_relaxed) || run.failing.load(std::memory_order_relaxed);
  if (run.now_ns() < start && !over) {
    pace.due_ns.store(start, std::memory_order_relaxed);
    pace.idle_until_ns.store(start, std::memory_order_relaxed);
    return false;
  }
  pace.due_ns.store(INT64_MAX, std::memory_order_relaxed);
  pace.idle_until_ns.store(INT64_MIN, std::memory_order_relaxed);
  pace.clock->start_ns = start;
  for (SourceState& source : pace.clock->sources) source.take_facts(source.step->handler->facts, *pace.clock->plan);
  await_value(pace);
  // A live source may have been read before the start. Its clock ticks from then on, so older frames are no ticks and
  // not late either.
  const SourceState* const driver = live_driver(pace);
  if (driver && driver->reader && run.options.begin_ns != kAtFirstLook) {
    driver->reader->drop_all();
    driver->reader->superseded_by(INT64_MIN);
  }
  log_clock_began(pace);
  return true;
}

} // namespace

// Admits no more ticks. The head comes here again until the readers have left their handlers, because those drain
// afterwards.
void end_pace(PaceRun& pace) {
  pace.ending.store(true, std::memory_order_relaxed);
  bool left = true;
  if (!pace.entry)
    for (SourceState& source : pace.clock->sources) left = (!source.reader || source.reader->leave()) && left;
  if (!left) {
    const int64_t again = pace.run->now_ns() + kAskAgainNs;
    pace.due_ns.store(again, std::memory_order_relaxed);
    pace.idle_until_ns.store(again, std::memory_order_relaxed);
    return;
  }
  pace.due_ns.store(INT64_MAX, std::memory_order_relaxed);
  pace.idle_until_ns.store(INT64_MIN, std::memory_order_relaxed);
  pace.ended.store(true, std::memory_order_release);
  if (pace.clock->plan->has_room) wake_seats(*pace.run, pace.clock->plan->set);
  if (pace.is_clock) end_seat(*pace.clock, *pace.run);
  if (pace.index == pace.plan->clock) give_up_changes(*pace.run, pace.plan->clock);
  pace.run->notify(pace);
  log_clock_ended(pace);
}

namespace {

// Changes that were requested since the last tick of this clock take effect on this tick; a script's changes take
// effect on the ticks that it names. If the sources were `asked` already and a request concerns one of them, all
// requests wait for the next tick: a request takes effect as a whole, and requests take effect in their order.
void admit_changes(PaceRun& pace, uint64_t index, bool asked) {
  RunState& run = *pace.run;
  const std::lock_guard lock(run.changes_mutex);
  const auto is_late = [&](const RunState::Change& change) {
    return change.at_index == UINT64_MAX &&
           std::any_of(pace.clock->sources.begin(), pace.clock->sources.end(),
                       [&](const SourceState& source) { return source.step->plan->handler() == change.handler; });
  };
  if (asked && std::any_of(run.requested.begin(), run.requested.end(), is_late)) return;
  size_t admitted = run.changes_admitted.load(std::memory_order_relaxed);
  forget_taken(run);
  std::vector<RunState::Change> others;
  for (RunState::Change& change : run.requested) {
    const bool mine = run.planned.plan.handlers[change.handler].clock == pace.plan->clock;
    if (!mine || (change.at_index != UINT64_MAX && change.at_index > index)) {
      others.push_back(std::move(change));
      continue;
    }
    // One that came from another node keeps its own: other paces here may not be there yet.
    if (change.at_index == UINT64_MAX) change.at_index = index;
    change.number = admitted++;
    record_value(run, change);
    const plan::Plan& plan = run.planned.plan;
    if (plan.is_over_nodes() && pace.index == pace.plan->clock && plan.handlers[change.handler].node != plan.node)
      send_change(run, pace.plan->clock, pace.epochs_over.load(std::memory_order_relaxed), change);
    if (change.request) run.changes_untold.store(true, std::memory_order_relaxed);
    run.changes.push_back(std::move(change));
  }
  run.requested = std::move(others);
  run.changes_admitted.store(admitted, std::memory_order_release);
  run.changes_waiting.store(!run.requested.empty(), std::memory_order_relaxed);
}

// True if the pace was to have so many ticks.
inline bool has_all_ticks(const PaceRun& pace, uint64_t ticks) {
  const uint64_t most = pace.run->options.ticks_max;
  return (most && ticks >= most) || ticks >= pace.plan->ticks_max;
}

// Stores what steps of other paces read of a tick. Called before `admitted` is stored.
void store_for_others(PaceRun& pace, uint64_t ordinal, const mr_tick_info& info) {
  pace.tick_index[ordinal & pace.mask].store(info.index, std::memory_order_relaxed);
  pace.tick_media_ns[ordinal & pace.mask].store(info.media_time_ns, std::memory_order_relaxed);
}

// Sets when the head has to look again without being notified: at the next beat, or at the time that take_live() set;
// else never. After the last tick, the head ends its pace at once. Out of line, as below: a free clock has no such
// time.
[[gnu::noinline]] void expect_next(PaceRun& pace, uint64_t next) {
  if (pace.clock->plan->mode == graph::ClockMode::realtime)
    expect_beat(pace);
  else if (!live_driver(pace))
    pace.due_ns.store(INT64_MAX, std::memory_order_relaxed);
  if (has_all_ticks(pace, next)) pace.idle_until_ns.store(INT64_MIN, std::memory_order_relaxed);
}

// Out of line, because few ticks do it and inline it would take registers from all.
[[gnu::cold, gnu::noinline]] void measure_tick(PaceRun& pace, uint64_t ordinal, const mr_tick_info& info) {
  PaceRun::Latency& latency = pace.latency[ordinal & pace.mask];
  const int64_t due = info.deadline_ns ? pace.clock->start_ns + info.media_time_ns : INT64_MAX;
  const int64_t now = pace.run->now_ns();
  latency.ordinal.store(ordinal, std::memory_order_relaxed);
  latency.from_ns = std::min({due, std::exchange(pace.asked_ns, INT64_MAX), now});
  latency.error_ns = pace.run->time->error_ns();
  uint32_t lanes = 0;
  for (const SegmentRun* segment : pace.segments) lanes += segment->plan->lane == ordinal % segment->plan->lanes;
  latency.segments_left.store(lanes, std::memory_order_release);
  pace.watch.record_begun(ordinal, now);
}

void publish_tick(PaceRun& pace, uint64_t ordinal, const mr_tick_info& info) {
  pace.infos[ordinal & pace.mask] = info;
  if (!pace.run->planned.plan.channels.empty()) store_for_others(pace, ordinal, info);
  if (pace.watch.is_due(ordinal)) [[unlikely]]
    measure_tick(pace, ordinal, info);
  if (pace.due_ns.load(std::memory_order_relaxed) != INT64_MAX ||
      pace.idle_until_ns.load(std::memory_order_relaxed) != INT64_MIN)
    expect_next(pace, ordinal + 1);
  // Last, because a step that reads a source begins the tick on the stamp alone.
  for (SourceState& source : pace.clock->sources) {
    for (size_t o = 0; o < source.value.size(); ++o) settle(*source.step->outputs[o], ordinal, source.value[o]);
    source.has_value = false;
    if (source.step->shared->wanted) source.step->shared->stamp(ordinal).store(ordinal + 1, std::memory_order_release);
  }
  pace.admitted.store(ordinal + 1, std::memory_order_release);
  pace.clock->newest_media_ns.store(info.media_time_ns, std::memory_order_release); // before `ended`
}

bool must_end(PaceRun& pace, uint64_t ordinal) {
  const RunState& run = *pace.run;
  if (run.stopping.load(std::memory_order_relaxed) || run.failing.load(std::memory_order_relaxed)) return true;
  if (pace.clock->halted.load(std::memory_order_relaxed) && !pace.clock->plan->comes_again()) return true;
  if (has_all_ticks(pace, ordinal)) return true;
  return run.options.duration_ns && run.now_ns() - pace.clock->start_ns >= run.options.duration_ns;
}

// The next move of a clock without sources (8.11).
enum class Lead { tick, wait, end };

bool leaders_ended(const PaceRun& pace) {
  return std::all_of(pace.leaders.begin(), pace.leaders.end(),
                     [](const PaceRun* leader) { return leader->ended.load(std::memory_order_acquire); });
}

// Under `realtime` the clock ticks until the channels that feed it are closed and read. A reader after a gate that lets
// in only ticks with values may never get another tick, so its channels need only be closed.
Lead follow_at_beats(PaceRun& pace) {
  if (!leaders_ended(pace)) return Lead::tick;
  for (ChannelRun* channel : pace.fed_by) {
    const ChannelEnd& to = *channel->to;
    const std::lock_guard lock(channel->mutex);
    const bool comes_again = to.pace == &pace || !to.pace->feed || to.pace->feed->plan->every_tick;
    if (!channel->closed || (channel->count > 0 && comes_again)) return Lead::tick;
  }
  return Lead::end;
}

// In the other modes the clock waits, and goes by media times alone, so that it has the same ticks in every run.
Lead follow_in_time(PaceRun& pace, uint64_t ordinal) {
  bool over = leaders_ended(pace); // before the look: if they have, no later tick of theirs follows
  for (const PaceRun* leader : pace.leaders) {
    const int64_t newest = leader->clock->newest_media_ns.load(std::memory_order_acquire);
    const int64_t rounding = leader->clock->plan->rounding_ns;
    if (newest != INT64_MIN && (ordinal == 0 || newest > later_by(pace.clock->last_media_ns, rounding)))
      return Lead::tick;
  }
  for (ChannelRun* channel : pace.fed_by) {
    if (channel->plan->kind != plan::ChannelKind::queue || channel->plan->full != graph::Full::block) continue;
    // True if a value in the channel waits for a new tick, because the reader has passed all ticks so far.
    const bool taken = ordinal == 0 || passed_by(*channel->to).has(pace.clock->last_media_ns);
    const std::lock_guard lock(channel->mutex);
    if (taken && channel->count > 0) return Lead::tick;
    over = over && taken && channel->closed;
  }
  return over ? Lead::end : Lead::wait;
}

Lead follow(PaceRun& pace, uint64_t ordinal) {
  if (pace.leaders.empty()) return Lead::tick;
  return pace.clock->plan->realtime() ? follow_at_beats(pace) : follow_in_time(pace, ordinal);
}

// True if the clock keeps its rate; else the run fails. Other clocks hold its ticks for as long as the plan says, and
// the rate says how many ticks that is (8.3). By media times alone.
bool keeps_rate(PaceRun& pace, uint64_t ordinal, int64_t media_ns) {
  LineVector<int64_t>& recent = pace.recent_media_ns;
  if (recent.empty()) return true;
  recent[ordinal % recent.size()] = media_ns;
  const plan::Clock& clock = *pace.clock->plan;
  const auto since = [&](uint64_t ticks) { return media_ns - recent[(ordinal - ticks) % recent.size()]; };
  const bool crowds =
      clock.crowd_ticks > 1 && ordinal + 1 >= clock.crowd_ticks && since(clock.crowd_ticks - 1) < clock.held_ns;
  // Results that were owed in an earlier epoch were drained at its end.
  const bool pauses = clock.owed_ticks > 0 && ordinal >= pace.first_index + clock.owed_ticks &&
                      since(clock.owed_ticks) > beat_ns(clock.rate, clock.owed_ticks + 1) + 1;
  if (!crowds && !pauses) return true;
  const auto ms = [](int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; };
  const std::string name = clock.name.empty() ? name_of(clock) : clock_now(*pace.run, pace.plan->clock);
  const std::string what = crowds ? std::to_string(clock.crowd_ticks) + " ticks came within " +
                                        ms(since(clock.crowd_ticks - 1)) + ", and clocks that wait for it hold " +
                                        ms(clock.held_ns) + " of them"
                                  : std::to_string(clock.owed_ticks + 1) + " ticks, whose results may be owed, took " +
                                        ms(since(clock.owed_ticks)) + ", longer than its rate says";
  Error error{code::source_off_rate,
              "clock \"" + name + "\" does not keep its rate at tick " + std::to_string(ordinal) + ": " + what,
              {},
              {},
              "",
              crowds ? "a higher rate:, or in_flight: above " + std::to_string(clock.crowd_ticks) : "a lower rate:"};
  pace.run->fail_clock(std::move(error), pace, ordinal);
  return false;
}

// Clears the `inside` of sources: no tick follows at once, so the watchdog would watch a call that has long returned.
void leave_calls(PaceRun& pace) {
  for (SourceState& source : pace.clock->sources) {
    std::atomic<const HandlerRun*>& inside = source.step->segment->inside;
    if (!source.reader && inside.load(std::memory_order_relaxed) == source.step)
      inside.store(nullptr, std::memory_order_relaxed);
  }
}

bool admit_clock_tick(PaceRun& pace) {
  const uint64_t ordinal = pace.admitted.load(std::memory_order_relaxed);
  if (pace.clock->start_ns == kNotBegun && !begin(pace)) return false;
  const bool over = pace.ending.load(std::memory_order_relaxed) || must_end(pace, ordinal);
  if (pace.clock->halted.load(std::memory_order_relaxed) && !over && !has_begun_anew(pace)) [[unlikely]] {
    if (pace.clock->stage == Stage::vacant && is_set_over(pace)) end_pace(pace);
    return false;
  }
  const Lead lead = over ? Lead::end : follow(pace, ordinal);
  if (lead == Lead::end) end_pace(pace);
  if (lead != Lead::tick) return false;
  // Before the sources are asked, because their calls belong to the tick.
  if (pace.run->changes_waiting.load(std::memory_order_relaxed)) admit_changes(pace, ordinal, false);
  mr_tick_info info{};
  info.clock = pace.plan->clock;
  info.epoch = pace.epochs_over.load(std::memory_order_relaxed);
  info.index = ordinal;
  info.trace_id = (uint64_t{pace.plan->clock} << kTraceIndexBits) + ordinal;
  const bool filled = fill_tick(pace, info, ordinal);
  if (!filled || sources_ended(pace)) {
    leave_calls(pace);
    if (filled && !loses_source(pace, ordinal) && !leaves_seat(pace)) end_pace(pace);
    return false;
  }
  // And after them: a program that changes a parameter and then pushes a value finds it changed for that value.
  if (pace.run->changes_waiting.load(std::memory_order_relaxed)) admit_changes(pace, ordinal, true);
  if (!keeps_rate(pace, ordinal, info.media_time_ns)) {
    leave_calls(pace);
    if (!pace.clock->plan->comes_again()) end_pace(pace);
    return false;
  }
  // Not before it is certain: the source of a tick to come may say that there is none.
  if (pace.run->changes_untold.load(std::memory_order_relaxed)) answer_taken(*pace.run, pace.plan->clock, ordinal);
  pace.clock->last_media_ns = info.media_time_ns;
  if (pace.clock->first_of_epoch) [[unlikely]]
    mark_first_values(pace);
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
      feed.dry.store(!feed.closed, std::memory_order_relaxed);
      if (feed.closed) end_pace(pace);
      if (feed.epochs_over != pace.epochs_over.load(std::memory_order_relaxed)) {
        pace.epochs_over.store(feed.epochs_over, std::memory_order_release);
        pace.stirred = true;
        pace.run->notify(pace);
      }
      return false;
    }
    retire(pace, ordinal);
    QueuedTick& tick = feed.at(0);
    pace.infos[ordinal & pace.mask] = tick.info;
    store_for_others(pace, ordinal, tick.info);
    PaceRun::Latency& latency = pace.latency[ordinal & pace.mask];
    latency.ordinal.store(tick.from_ns == kNotMeasured ? UINT64_MAX : ordinal, std::memory_order_relaxed);
    latency.from_ns = tick.from_ns;
    latency.error_ns = tick.from_error_ns;
    if (!tick.has_value()) --feed.empties;
    for (size_t o = 0; o < tick.slots.size(); ++o) {
      pace.entry->outputs[o]->at(ordinal) = tick.slots[o]; // its hold goes with it
      tick.slots[o] = Slot{};
    }
    feed.first = (feed.first + 1) % feed.ring.size();
    --feed.count;
    // Under the lock, so that a thread that counts the ticks in work sees this one either in the channel or in the
    // pace.
    pace.admitted.store(ordinal + 1, std::memory_order_release);
  }
  stamp(*pace.entry, ordinal);
  return true;
}

// Several far paces of the clock may be here, one before the other.
void record_media_time(ClockRun& clock, int64_t media_ns) {
  int64_t newest = clock.newest_media_ns.load(std::memory_order_relaxed);
  while (newest < media_ns && !clock.newest_media_ns.compare_exchange_weak(newest, media_ns, std::memory_order_release))
    continue;
}

// A far pace runs every tick of its clock, once all its feeds have it.
bool admit_far(PaceRun& pace) {
  const uint64_t ordinal = pace.admitted.load(std::memory_order_relaxed);
  if (window_full(pace, ordinal)) return false;
  const auto [info, ended, is_stranded] = next_tick(pace);
  record_stranded(pace, is_stranded && completed(pace) >= ordinal);
  if (ended) end_pace(pace);
  if (!info || (info->epoch != pace.epoch.load(std::memory_order_relaxed) && !reaches_epoch(pace, *info))) return false;
  retire(pace, ordinal);
  // The clock's own pace takes changes in where it is; elsewhere each of its far paces does, at the ticks they name.
  const bool is_home = pace.run->planned.paces[pace.plan->clock]->plan->node == pace.plan->node;
  if (!is_home && pace.run->changes_waiting.load(std::memory_order_relaxed)) admit_changes(pace, info->index, false);
  mr_tick_info& tick = pace.infos[ordinal & pace.mask];
  tick = *info;
  if (tick.deadline_ns) tick.deadline_ns += pace.plan->way_ns; // its way is not to cost it the time of its work (7.12)
  store_for_others(pace, ordinal, tick);
  pace.latency[ordinal & pace.mask].ordinal.store(UINT64_MAX, std::memory_order_relaxed);
  for (const FeedRun& feed : pace.feeds) take_from(feed, pace, ordinal, *info);
  if (!is_home) record_media_time(*pace.clock, info->media_time_ns);
  pace.admitted.store(ordinal + 1, std::memory_order_release);
  stamp(*pace.entry, ordinal);
  pace.run->notify_carrier();
  return true;
}

// Changes of a group's parameters come between two firings (B16), so they count firings.
bool admit_items(PaceRun& pace) {
  const uint64_t firing = pace.admitted.load(std::memory_order_relaxed) / pace.plan->rows;
  if (pace.run->changes_waiting.load(std::memory_order_relaxed)) admit_changes(pace, firing, false);
  if (pace.run->changes_admitted.load(std::memory_order_relaxed) != pace.group->changes_seen)
    take_batch_changes(*pace.group);
  if (!admit_firing(pace)) return false;
  if (pace.run->changes_untold.load(std::memory_order_relaxed)) answer_taken(*pace.run, pace.plan->clock, firing);
  return true;
}

} // namespace

bool try_admit(PaceRun& pace) {
  if (pace.ended.load(std::memory_order_relaxed)) return false;
  if (pace.plan->kind == plan::PaceKind::decoupled) return admit_entry(pace);
  if (pace.plan->kind == plan::PaceKind::batch) return admit_items(pace);
  if (pace.run->holding.load(std::memory_order_relaxed)) return false;
  return pace.plan->kind == plan::PaceKind::far ? admit_far(pace) : admit_clock_tick(pace);
}

} // namespace millrace::exec
