// Runs the edge policies: gates let ticks into decoupled paces, posts put values into channels, and resolves take from
// them what `latest`, `queue` and `align` say (semantics.md 1.3, 1.6, 2.3, 2.5).
#include <algorithm>
#include <utility>

#include "exec/align_error.h"
#include "exec/feeds.h"
#include "exec/firing.h"
#include "exec/seats.h"
#include "exec/settle.h"
#include "exec/source.h"
#include "exec/window.h"
#include "plan/pace.h"

namespace millrace::exec {

namespace {

bool inputs_settled(const StepRun& step, uint64_t ordinal) {
  for (const InputRun& input : step.inputs) {
    if (!input.output || !input.producer) continue;
    const auto [back, at] = look_back(step, input, ordinal);
    if (back == Back::there && !input.producer->settled(at)) return false;
  }
  return true;
}

void pop_front(ChannelRun& channel) {
  for (Slot& slot : channel.at(0).slots) release(slot);
  channel.first = (channel.first + 1) % channel.ring.size();
  --channel.count;
}

// Removes the oldest tick that has a value from the channel of a gate. Ticks without a value stay, and those before the
// removed one move up.
void pop_value(ChannelRun& channel) {
  size_t at = 0;
  while (at + 1 < channel.count && !channel.at(at).has_value()) ++at;
  for (; at > 0; --at) std::swap(channel.at(at), channel.at(at - 1));
  pop_front(channel);
}

void count_drop(ChannelRun& channel, Cause cause) { ++channel.dropped[0][static_cast<size_t>(cause)]; }

// For a gate: counts each value of the tick on the edges that the value belongs to.
void count_drop(ChannelRun& channel, const QueuedTick& tick, Cause cause) {
  for (size_t i = 0; i < tick.slots.size(); ++i)
    if (tick.slots[i].value) ++channel.dropped[i][static_cast<size_t>(cause)];
}

// Marks the ordinal as dealt with: a thread that asks how far this step is sees it from here on.
void mark_passed(ChannelEnd& step, uint64_t ordinal) {
  step.passed_media_ns.store(step.pace->info(ordinal).media_time_ns, std::memory_order_release);
  step.passed.store(ordinal + 1, std::memory_order_release);
  step.run->notify(*step.segment);
}

// The number of ticks that the pace has admitted and not finished.
uint64_t in_work(PaceRun& pace) {
  const uint64_t done = completed(pace), admitted = pace.admitted.load(std::memory_order_acquire);
  return admitted > done ? admitted - done : 0;
}

// Decides whether one more tick, whose values are in `tick`, may go through the gate. A queue holds values: a tick
// without a value takes no place from them, displaces none and is no drop (semantics.md 8.6).
Room room_at_gate(ChannelRun& channel, const QueuedTick& tick, bool realtime) {
  const plan::Channel& plan = *channel.plan;
  const bool has_value = tick.has_value();
  const size_t alike = has_value ? channel.count - channel.empties : channel.empties;
  PaceRun& pace = *channel.to->pace;
  const bool room = plan.busy ? channel.count + in_work(pace) < pace.window && !channel.full() : alike < plan.depth;
  if (room) return Room::push;
  if (!realtime) return Room::wait;
  if (!has_value) {
    ++channel.left_out;
    return Room::drop;
  }
  if (!plan.busy && plan.full == graph::Full::block) return Room::wait;
  if (plan.busy || plan.full == graph::Full::drop_newest) {
    count_drop(channel, tick, plan.busy ? Cause::busy : Cause::queue_full);
    return Room::drop;
  }
  size_t oldest = 0;
  while (!channel.at(oldest).has_value()) ++oldest;
  count_drop(channel, channel.at(oldest), Cause::queue_full);
  pop_value(channel);
  return Room::push;
}

// Drops values of a `latest` or `align` edge that no reader can ask for any more, because a newer one is old enough for
// every tick to come. The reader cannot be left to do this, because a gate before it may let in few ticks.
void drop_superseded(ChannelRun& channel) {
  const ChannelEnd& resolve = *channel.to;
  const bool same = channel.plan->same_clock;
  const int64_t lag = channel.plan->lag;
  const int64_t through = same ? settled_through(*resolve.pace, resolve) : passed_by(resolve).through_ns;
  const auto old_enough = [&](const mr_tick_info& info) {
    return same ? static_cast<int64_t>(info.index) + lag - 1 <= through
                : info.media_time_ns - channel.plan->rounding_ns - 1 <= through;
  };
  while (channel.count >= 2 && old_enough(channel.at(1).info)) {
    if (channel.plan->kind == plan::ChannelKind::latest) count_drop(channel, Cause::superseded);
    pop_front(channel);
  }
}

// Decides whether a queue whose reader waits has room for a value of this media time. A full queue drops a value only
// once the reader has passed every tick before that time, or its clock has ended, so that drops follow from media times
// alone (semantics.md 8.1).
Room room_in_queue(ChannelRun& channel, int64_t media_ns) {
  const plan::Channel& plan = *channel.plan;
  if (channel.count < plan.depth) return Room::push;
  const Passed reader = passed_by(*channel.to);
  if (reader.through_ns >= media_ns - plan.rounding_ns - 1) {
    count_drop(channel, Cause::queue_full);
    if (plan.full == graph::Full::drop_newest) return Room::drop;
    pop_front(channel);
    return Room::push;
  }
  if (!reader.ended) return Room::wait;
  count_drop(channel, Cause::end);
  return Room::drop;
}

// Decides whether a value may go into the channel of a `latest`, `queue` or `align` edge.
Room room_at_post(ChannelRun& channel, int64_t media_ns) {
  const plan::Channel& plan = *channel.plan;
  const StepRun& resolve = *channel.to;
  const bool realtime = resolve.pace->clock->plan->realtime();
  if (plan.kind == plan::ChannelKind::queue && plan.full != graph::Full::block && !realtime)
    return room_in_queue(channel, media_ns);
  if (resolve.pace->clock->seat->vacant.load() || resolve.segment->done.load()) { // the reader's clock has ended
    count_drop(channel, Cause::end);
    return Room::drop;
  }
  if (!channel.full() && (plan.kind != plan::ChannelKind::queue || channel.count < plan.depth)) return Room::push;
  if (!realtime || (plan.kind == plan::ChannelKind::queue && plan.full == graph::Full::block)) return Room::wait;
  if (plan.kind == plan::ChannelKind::queue) {
    count_drop(channel, Cause::queue_full);
    if (plan.full == graph::Full::drop_newest) return Room::drop;
  } else {
    count_drop(channel, plan.kind == plan::ChannelKind::latest ? Cause::superseded : Cause::unaligned);
  }
  pop_front(channel);
  return Room::push;
}

// For a gate: counts only the values of queue edges.
void count_queued(ChannelRun& channel, const QueuedTick& tick, Cause cause) {
  for (size_t i = 0; i < tick.slots.size(); ++i)
    if (tick.slots[i].value && channel.queued[i]) ++channel.dropped[i][static_cast<size_t>(cause)];
}

void clear_tick(QueuedTick& tick) { std::fill(tick.slots.begin(), tick.slots.end(), Slot{}); }

QueuedTick& push(ChannelRun& channel, const mr_tick_info& info) {
  QueuedTick& tick = channel.at(channel.count++);
  ++channel.pushed;
  channel.dry.store(false, std::memory_order_relaxed);
  tick.info = info;
  return tick;
}

// Makes this tick, the oldest of the channel, the one that the reader holds. With `count_unread`, a held value that was
// never read counts as superseded.
void make_current(ChannelRun& channel, QueuedTick& tick, bool count_unread) {
  if (channel.has_current && !channel.current_read && count_unread) count_drop(channel, Cause::superseded);
  for (Slot& slot : channel.current.slots) release(slot);
  std::swap(channel.current, tick); // the buffers of both vectors stay: no allocation
  channel.has_current = true;
  channel.current_read = false;
  channel.first = (channel.first + 1) % channel.ring.size();
  --channel.count;
}

// Lets go of the value that the reader holds. Called under the channel's lock.
void let_go(ChannelRun& channel) {
  for (Slot& slot : channel.current.slots) release(slot);
  channel.has_current = false;
}

void give_slot(StepRun& step, uint64_t ordinal, const Slot& slot) {
  Slot& target = step.outputs[0]->at(ordinal);
  target = slot;
  hold(target);
}

void give_current(StepRun& step, uint64_t ordinal, ChannelRun& channel) {
  if (channel.has_current) {
    give_slot(step, ordinal, channel.current.slots[0]);
    channel.current_read = true;
    return;
  }
  Slot& target = step.outputs[0]->at(ordinal) = Slot{};
  const PlanRun& planned = step.run->planned;
  if (channel.plan->initial_empty) target.value = &planned.empty_values[step.outputs[0] - planned.outputs.data()];
}

StepResult resolve_latest(ResolveRun& step, ChannelRun& channel, uint64_t ordinal, bool realtime) {
  const mr_tick_info& info = step.pace->info(ordinal);
  const bool same = channel.plan->same_clock;
  const auto lag = static_cast<int64_t>(channel.plan->lag);
  const int64_t newest = static_cast<int64_t>(info.index) - lag; // by index within a clock, by media time between
  const int64_t until_ns = later_by(info.media_time_ns, channel.plan->rounding_ns);
  const ChannelEnd& post = *channel.from;
  // Asked before the channel is read: if it has passed, no other value that is due can follow.
  const bool passed =
      realtime || (same ? newest < 0 || settled_through(*post.pace, post) >= newest : passed_by(post).has(until_ns));
  const std::lock_guard lock(channel.mutex);
  // Values that are due are taken before anything is waited for: the writer may wait for room before it can pass this
  // tick.
  const size_t waiting = channel.count;
  while (channel.count > 0) {
    QueuedTick& tick = channel.at(0);
    const bool due =
        same ? static_cast<int64_t>(tick.info.index) <= newest : realtime || tick.info.media_time_ns <= until_ns;
    if (!due) break;
    make_current(channel, tick, true);
  }
  if (!passed) {
    if (channel.count == waiting) return StepResult::waiting;
    step.run->notify(*step.segment);
    return StepResult::made_room;
  }
  if (same && channel.current.info.epoch != info.epoch) let_go(channel); // that epoch is over
  give_current(step, ordinal, channel);
  return StepResult::settled;
}

StepResult resolve_queue(ResolveRun& step, ChannelRun& channel, uint64_t ordinal, bool realtime) {
  const mr_tick_info& info = step.pace->info(ordinal);
  if (info.index % step.every != 0) {
    clear_outputs(step, ordinal, Cause::every);
    return StepResult::settled;
  }
  const ChannelEnd& post = *channel.from;
  const int64_t until_ns = later_by(info.media_time_ns, channel.plan->rounding_ns);
  const bool passed =
      realtime || passed_by(post).has(until_ns); // asked before the channel is read: nothing older follows
  const std::lock_guard lock(channel.mutex);
  const auto is_due = [&](size_t i) { return realtime || channel.at(i).info.media_time_ns <= until_ns; };
  const bool due = channel.count > 0 && is_due(0);
  // The oldest value is certain in a queue that blocks, whatever follows. In a queue that drops, a later one that is
  // due may displace it, or may be left out because it is still there.
  const bool certain = due && channel.plan->full == graph::Full::block;
  const bool later_is_here = channel.count > 0 && !is_due(channel.count - 1);
  if (!certain && !passed && !later_is_here) return StepResult::waiting;
  Slot& target = step.outputs[0]->at(ordinal);
  if (!due) {
    target = nothing(Cause::not_yet);
    return StepResult::settled;
  }
  QueuedTick& tick = channel.at(0);
  target = tick.slots[0]; // its hold goes with it
  tick.slots[0] = Slot{};
  pop_front(channel);
  return StepResult::settled;
}

StepResult resolve_align(ResolveRun& step, ChannelRun& channel, uint64_t ordinal, bool realtime) {
  const mr_tick_info& info = step.pace->info(ordinal);
  const int64_t at = info.media_time_ns, within = channel.plan->within_ns;
  const ChannelEnd& post = *channel.from;
  const Passed writer = passed_by(post); // asked before the channel is read: nothing older follows
  const bool passed = writer.has(at + within);
  const std::lock_guard lock(channel.mutex);
  const size_t waiting = channel.count;
  // Values before the asked time pass through `current`, which keeps the last of them.
  while (channel.count > 0 && channel.at(0).info.media_time_ns <= at) make_current(channel, channel.at(0), false);
  const bool decided = channel.count > 0 || passed;
  if (!decided) {
    const bool late = realtime && info.deadline_ns && step.run->now_ns() >= info.deadline_ns;
    if (!late) {
      if (realtime && info.deadline_ns) step.decides_at_ns.store(info.deadline_ns, std::memory_order_relaxed);
      return channel.count == waiting ? StepResult::waiting : StepResult::made_room;
    }
  }
  step.decides_at_ns.store(INT64_MAX, std::memory_order_relaxed);
  const int64_t before = channel.has_current ? at - channel.current.info.media_time_ns : INT64_MAX;
  const int64_t after = channel.count > 0 ? channel.at(0).info.media_time_ns - at : INT64_MAX;
  record_align_error(step, ordinal, channel);
  if (std::min(before, after) > within) {
    step.outputs[0]->at(ordinal) = nothing(writer.ended && channel.count == 0 ? Cause::end : Cause::unaligned);
    count_drop(channel, Cause::unaligned);
    return StepResult::settled;
  }
  give_slot(step, ordinal, before <= after ? channel.current.slots[0] : channel.at(0).slots[0]);
  return StepResult::settled;
}

// True if each input that the gate requires has a value: then the handler after it fires (semantics.md 8.12).
bool is_whole(const GateRun& gate, const QueuedTick& tick) {
  for (size_t i = 0; i < gate.inputs.size(); ++i)
    if (gate.inputs[i].required && !tick.slots[i].value) return false;
  return true;
}

} // namespace

StepResult GateRun::advance(uint64_t ordinal) {
  if (!inputs_settled(*this, ordinal)) return StepResult::waiting;
  const mr_tick_info& info = pace->info(ordinal);
  for (const InputRun& input : inputs) { // a value from a device counts once the device is done (4.1)
    const auto [back, at] = look_back(*this, input, ordinal);
    if (back == Back::there && !input.output->at(at).fence.done()) return StepResult::waiting;
  }
  QueuedTick& tick = channel->current; // a gate puts its tick together here; only its own step touches it
  Slot initial;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Slot* slot = read(*this, inputs[i], ordinal, initial);
    tick.slots[i] = slot ? *slot : nothing(why_empty(*this, inputs[i], ordinal));
    tick.slots[i].presence_pending = false;
  }
  const bool let_in =
      channel->plan->every_tick || (channel->plan->on_firing ? is_whole(*this, tick) : tick.has_value());
  const bool fires = info.index % every == 0;
  if (let_in) {
    const std::lock_guard lock(channel->mutex);
    const bool realtime = pace->clock->plan->realtime();
    const Room room = channel->plan->far ? room_in_feed(*channel, tick, realtime)
                      : fires            ? room_at_gate(*channel, tick, realtime)
                                         : Room::drop;
    if (room == Room::wait) {
      clear_tick(tick);
      return StepResult::waiting;
    }
    if (!fires) count_queued(*channel, tick, Cause::every);
    if (room == Room::push) {
      for (const Slot& slot : tick.slots) hold(slot);
      if (!channel->plan->far && !tick.has_value()) ++channel->empties;
      QueuedTick& pushed = push(*channel, info);
      pushed.gap = std::exchange(channel->gap, Cause::link);
      pushed.record_beginning(*pace, ordinal);
      std::swap(pushed.slots, tick.slots);
    }
  }
  clear_tick(tick);
  mark_passed(*this, ordinal);
  if (!channel->to) run->notify_carrier();
  return StepResult::settled;
}

StepResult PostRun::advance(uint64_t ordinal) {
  if (!inputs_settled(*this, ordinal)) return StepResult::waiting;
  const Slot& slot = inputs[0].output->at(ordinal);
  if (!slot.fence.done()) return StepResult::waiting; // a device's output counts when it is done (4.1)
  if (present(*run, slot)) {
    const std::lock_guard lock(channel->mutex);
    if (channel->full() && channel->plan->kind != plan::ChannelKind::queue) drop_superseded(*channel);
    const Room room = room_at_post(*channel, pace->info(ordinal).media_time_ns);
    if (room == Room::wait) return StepResult::waiting;
    if (room == Room::push) {
      QueuedTick& tick = push(*channel, pace->info(ordinal));
      tick.record_beginning(*pace, ordinal);
      tick.slots[0] = slot;
      tick.slots[0].presence_pending = false;
      hold(slot);
    }
  }
  mark_passed(*this, ordinal);
  return StepResult::settled;
}

StepResult ResolveRun::advance(uint64_t ordinal) {
  const bool realtime = pace->clock->plan->realtime();
  StepResult result = StepResult::waiting;
  switch (channel->plan->kind) {
    case plan::ChannelKind::latest: result = resolve_latest(*this, *channel, ordinal, realtime); break;
    case plan::ChannelKind::queue: result = resolve_queue(*this, *channel, ordinal, realtime); break;
    case plan::ChannelKind::align: result = resolve_align(*this, *channel, ordinal, realtime); break;
    case plan::ChannelKind::gate: break;
  }
  if (result != StepResult::settled) return result;
  stamp(*this, ordinal);
  mark_passed(*this, ordinal); // a post may wait for room
  return StepResult::settled;
}

void count_lost(StepRun& step, uint64_t ordinal, Cause cause) {
  for (InputRun& input : step.inputs) {
    if (!input.queue) continue;
    const Slot& slot = input.queue->at(ordinal);
    if (!slot.value || (slot.presence_pending && !slot.fence.done()) || !present(*step.run, slot)) continue;
    ++(cause == Cause::every ? input.totals->lost_by_every : input.totals->lost_by_input);
  }
}

void release_channel(ChannelRun& channel) {
  const std::lock_guard lock(channel.mutex);
  channel.released = true;
  for (; channel.count > 0; pop_front(channel)) {
    if (channel.taken == 0)
      count_drop(channel, channel.at(0), Cause::end);
    else
      --channel.taken; // it was given to a link
  }
  if (channel.plan->kind == plan::ChannelKind::latest && channel.has_current && !channel.current_read)
    count_drop(channel, Cause::end);
  let_go(channel);
}

} // namespace millrace::exec
