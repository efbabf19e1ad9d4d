// Edge policies at work: gates let ticks into paces that work behind, posts put values into channels, resolves take
// from them what `latest`, `queue` and `align` say (semantics.md 1.3, 1.6, 2.3, 2.5).
#include <algorithm>

#include "exec/state.h"

namespace millrace::exec {

namespace {

bool settled(const StepRun& step, uint64_t ordinal) {
  for (const InputRun& input : step.inputs) {
    if (!input.output || !input.producer) continue;
    const auto [back, at] = look_back(step, input, ordinal);
    if (back != Back::there) continue;
    if (!input.producer->settled(at)) return false;
  }
  return true;
}

void pop_front(ChannelRun& channel) {
  for (Slot& slot : channel.at(0).slots) release(slot);
  channel.first = (channel.first + 1) % channel.ring.size();
  --channel.count;
}

void count(ChannelRun& channel, Cause cause) { ++channel.dropped[static_cast<size_t>(cause)]; }

// The ordinal is dealt with: whoever asks how far this step is sees it from here on.
void pass(StepRun& step, uint64_t ordinal) {
  step.passed_media_ns.store(step.pace->info(ordinal).media_time_ns, std::memory_order_release);
  step.passed.store(ordinal + 1, std::memory_order_release);
  step.run->notify();
}

// Ticks that the pace has taken in and not finished.
uint64_t in_work(PaceRun& pace) {
  const uint64_t done = completed(pace);
  const uint64_t admitted = pace.admitted.load(std::memory_order_acquire);
  return admitted > done ? admitted - done : 0;
}

enum class Room { push, drop, wait };

// Whether one more tick may go through the gate.
Room room_at_gate(ChannelRun& channel, PaceRun& pace, bool realtime) {
  const plan::Channel& plan = *channel.plan;
  if (plan.busy) {
    if (channel.count + in_work(pace) < pace.window && !channel.full()) return Room::push;
    if (!realtime) return Room::wait;
    count(channel, Cause::busy);
    return Room::drop;
  }
  if (channel.count < plan.depth) return Room::push;
  if (!realtime || plan.full == graph::Full::block) return Room::wait;
  count(channel, Cause::queue_full);
  if (plan.full == graph::Full::drop_newest) return Room::drop;
  pop_front(channel);
  return Room::push;
}

// A media time that every tick which the step has not dealt with lies behind.
int64_t passed_media_time(const StepRun& step) {
  const PaceRun& pace = *step.pace;
  const int64_t passed = step.passed_media_ns.load(std::memory_order_acquire);
  if (!pace.gate) return passed;
  // Where nothing that the gate let in is left to do, the gate itself says how far it is. The gate first: what it lets
  // in later than this look lies behind it.
  const int64_t gate = pace.gate->passed_media_ns.load(std::memory_order_acquire);
  const std::lock_guard lock(pace.feed->mutex);
  const bool idle = pace.feed->count == 0 &&
                    step.passed.load(std::memory_order_acquire) >= pace.admitted.load(std::memory_order_acquire);
  return idle ? std::max(gate, passed) : passed;
}

// Values of a `latest` or `align` edge that no reader can ask for any more, because a newer one is old enough for every
// tick to come. The reader may be behind a gate that lets few ticks in, so it cannot be left to do this.
void drop_superseded(ChannelRun& channel, StepRun& resolve) {
  const bool same = channel.plan->same_clock;
  const int64_t lag = channel.plan->lag;
  const int64_t through = same ? settled_through(*resolve.pace, resolve) : passed_media_time(resolve);
  const auto old_enough = [&](const mr_tick_info& info) {
    return same ? static_cast<int64_t>(info.index) + lag - 1 <= through : info.media_time_ns - 1 <= through;
  };
  while (channel.count >= 2 && old_enough(channel.at(1).info)) {
    if (channel.plan->kind == plan::ChannelKind::latest) count(channel, Cause::superseded);
    pop_front(channel);
  }
}

// Whether a value may go into the channel of a `latest`, `queue` or `align` edge.
Room room_at_post(ChannelRun& channel, StepRun& resolve) {
  const plan::Channel& plan = *channel.plan;
  const bool realtime = resolve.pace->clock->realtime();
  if (resolve.segment->done.load(std::memory_order_acquire)) { // the reader's clock has ended
    count(channel, Cause::end);
    return Room::drop;
  }
  if (!channel.full() && (plan.kind != plan::ChannelKind::queue || channel.count < plan.depth)) return Room::push;
  if (!realtime || (plan.kind == plan::ChannelKind::queue && plan.full == graph::Full::block)) return Room::wait;
  if (plan.kind == plan::ChannelKind::queue) {
    count(channel, Cause::queue_full);
    if (plan.full == graph::Full::drop_newest) return Room::drop;
  } else {
    count(channel, plan.kind == plan::ChannelKind::latest ? Cause::superseded : Cause::unaligned);
  }
  pop_front(channel);
  return Room::push;
}

Entry& push(ChannelRun& channel, const mr_tick_info& info) {
  Entry& entry = channel.at(channel.count++);
  ++channel.pushed;
  entry.info = info;
  return entry;
}

// What the reader holds becomes this entry's value.
void make_current(ChannelRun& channel, Entry& entry, bool count_unread) {
  if (channel.has_current && !channel.current_read && count_unread) count(channel, Cause::superseded);
  for (Slot& slot : channel.current.slots) release(slot);
  std::swap(channel.current, entry); // the buffers of both vectors stay: no allocation
  channel.has_current = true;
  channel.current_read = false;
  channel.first = (channel.first + 1) % channel.ring.size();
  --channel.count;
}

void give(StepRun& step, uint64_t ordinal, const Slot& slot) {
  Slot& target = step.outputs[0]->at(ordinal);
  target = slot;
  hold(target);
}

void give_current(StepRun& step, uint64_t ordinal, ChannelRun& channel) {
  if (channel.has_current) {
    give(step, ordinal, channel.current.slots[0]);
    channel.current_read = true;
    return;
  }
  Slot& target = step.outputs[0]->at(ordinal);
  target = Slot{};
  if (channel.plan->initial_empty)
    target.value = &step.run->empty_values[static_cast<size_t>(step.outputs[0] - step.run->outputs.data())];
}

StepResult resolve_latest(StepRun& step, ChannelRun& channel, uint64_t ordinal, bool realtime) {
  const mr_tick_info& info = step.pace->info(ordinal);
  const bool same = channel.plan->same_clock;
  const auto lag = static_cast<int64_t>(channel.plan->lag);
  const int64_t newest = static_cast<int64_t>(info.index) - lag; // by index within a clock, by media time between
  StepRun& post = *step.run->step_runs[channel.plan->from];
  // Before the look: then nothing that is due follows.
  const bool passed = realtime || (same ? newest < 0 || settled_through(*post.pace, post) >= newest
                                        : passed_media(*post.pace, post, info.media_time_ns));
  const std::lock_guard lock(channel.mutex);
  // What is due is taken before anything is waited for: the writer may wait for room until it has passed this tick.
  const size_t waiting = channel.count;
  while (channel.count > 0) {
    Entry& entry = channel.at(0);
    const bool due = same ? static_cast<int64_t>(entry.info.index) <= newest
                          : realtime || entry.info.media_time_ns <= info.media_time_ns;
    if (!due) break;
    make_current(channel, entry, true);
  }
  if (!passed) {
    if (channel.count == waiting) return StepResult::waiting;
    step.run->notify();
    return StepResult::made_room;
  }
  give_current(step, ordinal, channel);
  return StepResult::settled;
}

StepResult resolve_queue(StepRun& step, ChannelRun& channel, uint64_t ordinal, bool realtime) {
  const mr_tick_info& info = step.pace->info(ordinal);
  StepRun& post = *step.run->step_runs[channel.plan->from];
  const bool passed =
      realtime || passed_media(*post.pace, post, info.media_time_ns); // before the look: then nothing older follows
  const std::lock_guard lock(channel.mutex);
  const bool waiting = channel.count > 0 && (realtime || channel.at(0).info.media_time_ns <= info.media_time_ns);
  if (!waiting && !passed && channel.count == 0) return StepResult::waiting;
  Slot& target = step.outputs[0]->at(ordinal);
  if (!waiting) {
    target = Slot{};
    target.cause = Cause::not_yet;
    return StepResult::settled;
  }
  Entry& entry = channel.at(0);
  target = entry.slots[0]; // its hold goes with it
  entry.slots[0] = Slot{};
  pop_front(channel);
  return StepResult::settled;
}

StepResult resolve_align(StepRun& step, ChannelRun& channel, uint64_t ordinal, bool realtime) {
  const mr_tick_info& info = step.pace->info(ordinal);
  const int64_t at = info.media_time_ns, within = channel.plan->within_ns;
  StepRun& post = *step.run->step_runs[channel.plan->from];
  const bool passed = passed_media(*post.pace, post, at + within);
  const std::lock_guard lock(channel.mutex);
  const size_t waiting = channel.count;
  // Values before the asked time pass through `current`, which keeps the last of them.
  while (channel.count > 0 && channel.at(0).info.media_time_ns <= at) make_current(channel, channel.at(0), false);
  const bool decided = channel.count > 0 || passed;
  if (!decided) {
    const bool late = realtime && info.deadline_ns && step.run->now_ns() >= info.deadline_ns;
    if (!late) {
      step.pace->due_ns.store(std::min(step.pace->due_ns.load(), info.deadline_ns ? info.deadline_ns : INT64_MAX));
      return channel.count == waiting ? StepResult::waiting : StepResult::made_room;
    }
  }
  const int64_t before = channel.has_current ? at - channel.current.info.media_time_ns : INT64_MAX;
  const int64_t after = channel.count > 0 ? channel.at(0).info.media_time_ns - at : INT64_MAX;
  if (std::min(before, after) > within) {
    Slot& target = step.outputs[0]->at(ordinal);
    target = Slot{};
    target.cause = Cause::unaligned;
    count(channel, Cause::unaligned);
    return StepResult::settled;
  }
  give(step, ordinal, before <= after ? channel.current.slots[0] : channel.at(0).slots[0]);
  return StepResult::settled;
}

} // namespace

StepResult run_gate(StepRun& step, uint64_t ordinal) {
  if (!settled(step, ordinal)) return StepResult::waiting;
  RunState& run = *step.run;
  const mr_tick_info& info = step.pace->info(ordinal);
  ChannelRun& channel = *run.channels[step.plan->channel];
  for (const InputRun& input : step.inputs) { // what a device decides counts once it is done (4.1)
    const auto [back, at] = look_back(step, input, ordinal);
    if (back == Back::there && !input.output->at(at).fence.done()) return StepResult::waiting;
  }
  bool any = channel.plan->every_tick;
  Slot initial;
  for (InputRun& input : step.inputs) any = read(step, input, ordinal, initial) || any;
  if (!any || info.index % step.every != 0) {
    pass(step, ordinal);
    return StepResult::settled;
  }
  PaceRun& pace = *run.step_runs[channel.plan->to]->pace;
  {
    const std::lock_guard lock(channel.mutex);
    const Room room = room_at_gate(channel, pace, step.pace->clock->realtime());
    if (room == Room::wait) return StepResult::waiting;
    if (room == Room::push) {
      Entry& entry = push(channel, info);
      entry.from_ns = step.pace->latency[ordinal & step.pace->mask].from_ns;
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const Slot* slot = read(step, step.inputs[i], ordinal, initial);
        entry.slots[i] = slot ? *slot : Slot{};
        entry.slots[i].unknown = false;
        hold(entry.slots[i]);
      }
    }
  }
  pass(step, ordinal);
  return StepResult::settled;
}

StepResult run_post(StepRun& step, uint64_t ordinal) {
  if (!settled(step, ordinal)) return StepResult::waiting;
  const Slot& slot = step.inputs[0].output->at(ordinal);
  if (!slot.fence.done()) return StepResult::waiting; // a device's output counts when it is done (4.1)
  if (present(*step.run, slot)) {
    ChannelRun& channel = *step.run->channels[step.plan->channel];
    StepRun& resolve = *step.run->step_runs[channel.plan->to];
    const std::lock_guard lock(channel.mutex);
    if (channel.full() && channel.plan->kind != plan::ChannelKind::queue) drop_superseded(channel, resolve);
    const Room room = room_at_post(channel, resolve);
    if (room == Room::wait) return StepResult::waiting;
    if (room == Room::push) {
      Entry& entry = push(channel, step.pace->info(ordinal));
      entry.slots[0] = slot;
      entry.slots[0].unknown = false;
      hold(slot);
    }
  }
  pass(step, ordinal);
  return StepResult::settled;
}

StepResult run_resolve(StepRun& step, uint64_t ordinal) {
  ChannelRun& channel = *step.run->channels[step.plan->channel];
  const bool realtime = step.pace->clock->realtime();
  StepResult result = StepResult::waiting;
  switch (channel.plan->kind) {
    case plan::ChannelKind::latest: result = resolve_latest(step, channel, ordinal, realtime); break;
    case plan::ChannelKind::queue: result = resolve_queue(step, channel, ordinal, realtime); break;
    case plan::ChannelKind::align: result = resolve_align(step, channel, ordinal, realtime); break;
    case plan::ChannelKind::gate: break;
  }
  if (result != StepResult::settled) return result;
  stamp(step, ordinal);
  pass(step, ordinal); // a post may wait for room
  return StepResult::settled;
}

void close_channel(ChannelRun& channel) {
  const std::lock_guard lock(channel.mutex);
  channel.closed = true;
}

void release_channel(ChannelRun& channel) {
  const std::lock_guard lock(channel.mutex);
  while (channel.count > 0) {
    count(channel, Cause::end);
    pop_front(channel);
  }
  if (channel.plan->kind == plan::ChannelKind::latest && channel.has_current && !channel.current_read)
    count(channel, Cause::end);
  for (Slot& slot : channel.current.slots) release(slot);
  channel.has_current = false;
}

} // namespace millrace::exec
