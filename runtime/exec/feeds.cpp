// Lets ticks into the feeds of far paces and takes them out again; see feeds.h.
#include "exec/feeds.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "exec/settle.h"
#include "exec/window.h"
#include "plan/pace.h"

namespace millrace::exec {

namespace {

void count_left_out(ChannelRun& channel, const QueuedTick& tick, Cause cause) {
  ++channel.ticks_left_out[static_cast<size_t>(cause)];
  if (!tick.has_value()) ++channel.left_out;
  for (size_t v = 0; v < tick.slots.size(); ++v)
    if (tick.slots[v].value) ++channel.dropped[v][static_cast<size_t>(cause)];
}

// Removes the oldest tick that no link has taken. The one after it tells the reader why it is missing.
void leave_out_oldest(ChannelRun& channel) {
  QueuedTick& oldest = channel.at(channel.taken);
  count_left_out(channel, oldest, Cause::link);
  for (Slot& slot : oldest.slots) release(slot);
  for (size_t i = channel.taken; i + 1 < channel.count; ++i) std::swap(channel.at(i), channel.at(i + 1));
  --channel.count;
  (channel.taken < channel.count ? channel.at(channel.taken).gap : channel.gap) = Cause::link;
}

void pop(ChannelRun& channel) {
  channel.first = (channel.first + 1) % channel.ring.size();
  --channel.count;
  ++channel.passed_on;
}

bool is_before(const mr_tick_info& a, const mr_tick_info& b) {
  return a.epoch != b.epoch ? a.epoch < b.epoch : a.index < b.index;
}

// Drops ticks that come after a later one was admitted, or after the end of their epoch. True if it has made room.
bool drop_late(PaceRun& pace, ChannelRun& channel) {
  const uint64_t ordinal = pace.admitted.load(std::memory_order_relaxed);
  const uint32_t epoch = pace.epochs_over.load(std::memory_order_relaxed);
  const auto is_late = [&](const mr_tick_info& info) {
    return info.epoch < epoch || (ordinal > 0 && !is_before(pace.info(ordinal - 1), info));
  };
  bool made_room = false;
  while (channel.count > 0 && is_late(channel.at(0).info)) {
    count_left_out(channel, channel.at(0), Cause::late);
    for (Slot& slot : channel.at(0).slots) release(slot);
    pop(channel);
    made_room = true;
  }
  return made_room;
}

} // namespace

Room room_in_feed(ChannelRun& channel, const QueuedTick& tick, bool realtime) {
  const bool has_old = !channel.keeps_old && channel.taken < channel.count; // that may make room
  const bool is_left_out = realtime && (channel.away || (channel.full() && !has_old));
  if (is_left_out) {
    channel.gap = channel.away ? Cause::away : Cause::link;
    count_left_out(channel, tick, channel.gap);
    return Room::drop;
  }
  if (channel.full() && !realtime) return Room::wait;
  if (channel.full()) leave_out_oldest(channel);
  return Room::push;
}

namespace {

// True if the clock ends as far as this node knows: a feed whose node is away brings no end.
bool clock_ends(const PaceRun& pace) {
  const RunState& run = *pace.run;
  const PaceRun& own = *run.planned.paces[pace.plan->clock];
  const bool is_home = own.plan->node == pace.plan->node;
  return run.stopping.load() || run.clocks_over.load() || (is_home && own.ended.load(std::memory_order_acquire));
}

// `made_room`: set if a tick that came too late was dropped.
NextTick find_next(PaceRun& pace, bool& made_room) {
  NextTick next{std::nullopt, true};
  const bool realtime = pace.clock->plan->realtime();
  const bool ends = realtime && clock_ends(pace);
  for (const FeedRun& feed : pace.feeds) {
    ChannelRun& channel = *feed.channel;
    const bool is_stranded = realtime && channel.from && exec::is_stranded(*channel.from); // before the channel is read
    const std::lock_guard lock(channel.mutex);
    made_room = (realtime && drop_late(pace, channel)) || made_room;
    const bool away = realtime && (channel.away || channel.stranded || is_stranded);
    if (channel.count == 0 && (channel.closed || (away && ends))) continue;
    next.ended = false;
    if (channel.count == 0 && away) continue;
    if (channel.count == 0) return {};
    const mr_tick_info& info = channel.at(0).info;
    if (!next.info || is_before(info, *next.info)) next.info = info;
  }
  next.is_stranded = !next.ended && !next.info;
  return next;
}

} // namespace

NextTick next_tick(PaceRun& pace) {
  bool made_room = false;
  const NextTick next = find_next(pace, made_room);
  if (made_room) pace.run->notify_carrier(); // without the lock of a channel
  return next;
}

void record_stranded(PaceRun& pace, bool is_stranded) {
  if (pace.stranded.load(std::memory_order_relaxed) == is_stranded) return;
  pace.stranded.store(is_stranded, std::memory_order_release);
  pace.stirred = true;
  pace.run->notify(pace);
  pace.run->notify_carrier();
}

void take_from(const FeedRun& feed, PaceRun& pace, uint64_t ordinal, const mr_tick_info& info) {
  ChannelRun& channel = *feed.channel;
  const std::lock_guard lock(channel.mutex);
  const size_t values = channel.current.slots.size();
  if (channel.count == 0 || is_before(info, channel.at(0).info)) {
    const Cause cause = channel.count > 0 ? channel.at(0).gap : channel.closed ? Cause::end : Cause::away;
    for (size_t v = 0; v < values; ++v) pace.entry->outputs[feed.first + v]->at(ordinal) = nothing(cause);
    return;
  }
  QueuedTick& tick = channel.at(0);
  for (size_t v = 0; v < values; ++v)
    pace.entry->outputs[feed.first + v]->at(ordinal) = std::exchange(tick.slots[v], Slot{}); // its hold goes with it
  if (tick.from_ns != kNotMeasured) {
    PaceRun::Latency& latency = pace.latency[ordinal & pace.mask];
    latency.ordinal.store(ordinal, std::memory_order_relaxed);
    latency.from_ns = tick.from_ns;
    latency.error_ns = tick.from_error_ns;
  }
  pop(channel);
}

} // namespace millrace::exec
