// Takes items into groups, fires them, and gives their results back; see group.h.
#include "exec/group.h"

#include <algorithm>
#include <cstring>

#include "exec/admission.h"
#include "exec/channel.h"
#include "exec/firing.h"
#include "exec/handler_run.h"
#include "exec/settle.h"
#include "exec/tell.h"
#include "exec/window.h"

namespace millrace::exec {

namespace {

// ---- giving --------------------------------------------------------------------------------------------------------

bool inputs_done(const GiveRun& give, uint64_t ordinal) {
  for (const InputRun& input : give.inputs) {
    if (!input.output) continue;
    const auto [back, at] = look_back(give, input, ordinal);
    if (back != Back::there) continue;
    if (input.producer && !input.producer->settled(at)) return false;
    if (!input.output->at(at).fence.done()) return false; // a value from a device counts once it is done (4.1)
  }
  return true;
}

// True if a handler of the group that reads the stream would fire on this tick.
bool is_item(const GiveRun& give, uint64_t index, const std::vector<Slot>& slots) {
  return std::any_of(give.give->readers.begin(), give.give->readers.end(), [&](const plan::GiveStep::Reader& reader) {
    const auto is_there = [&](uint32_t input) { return slots[input].value != nullptr; };
    return index % reader.every == 0 && std::all_of(reader.required.begin(), reader.required.end(), is_there);
  });
}

bool all_pass_over(const GiveRun& give, uint64_t index) {
  return std::none_of(give.give->readers.begin(), give.give->readers.end(),
                      [&](const plan::GiveStep::Reader& reader) { return index % reader.every == 0; });
}

// Takes the inputs of the tick into `slots`. Returns why there is none, if a required one is missing. As handlers do,
// it counts nothing on a tick that `every` passes over.
Cause take_inputs(GiveRun& give, uint64_t ordinal, std::vector<Slot>& slots) {
  Cause cause = Cause::input;
  const bool counts = !all_pass_over(give, give.pace->info(ordinal).index);
  for (size_t i = 0; i < give.inputs.size(); ++i) {
    InputRun& input = give.inputs[i];
    Slot room;
    const Slot* const slot = read(give, input, ordinal, room);
    slots[i] = slot ? *slot : nothing(why_empty(give, input, ordinal));
    slots[i].presence_pending = false;
    if (slot) {
      if (counts) ++input.totals->delivered;
      continue;
    }
    if (counts) ++input.totals->empty[static_cast<size_t>(slots[i].cause)];
    if (input.required && slots[i].cause == Cause::end) cause = Cause::end; // its outputs pass the end on
  }
  return cause;
}

// The places that the item takes in a firing.
uint32_t rows_of(const GiveRun& give, const std::vector<Slot>& slots) {
  const uint32_t input = give.give->rows_input;
  if (input == plan::kNone || !slots[input].value) return 1;
  const mr_value& value = *slots[input].value;
  const auto rows = value.header.kind == MR_KIND_RECORDS ? value.as.records.count
                    : value.header.kind == MR_KIND_TENSOR && value.as.tensor.rank > 0
                        ? static_cast<uint64_t>(value.as.tensor.shape[0])
                        : uint64_t{1};
  return static_cast<uint32_t>(std::clamp<uint64_t>(rows, 1, give.group->plan->items_max));
}

void come_in(GiveRun& give, int64_t now_ns) {
  if (give.has_left) give.group->collector->stream_removed(give.give->stream);
  if (give.is_in_collector && !give.has_left) return;
  give.has_left = false;
  const plan::Clock& clock = *give.pace->clock->plan;
  give.group->collector->stream_added(give.give->stream, {item_period_ns(clock), give.priority, give.give->allowance},
                                      now_ns);
  give.is_in_collector = true;
}

void note_owed(GiveRun& give) {
  give.oldest_owed.store(give.owed.empty() ? UINT64_MAX : give.owed.front(), std::memory_order_release);
}

// The item's outputs are there. Called under the group's mutex.
void settle_item(GiveRun& give, uint64_t ordinal) {
  if (give.shared->wanted) give.shared->stamp(ordinal).store(ordinal + 1, std::memory_order_release);
  for (Slot& slot : give.items[ordinal & give.pace->mask]) release(slot);
  std::erase(give.owed, ordinal);
  note_owed(give);
}

uint64_t errors_of(const GroupRun& group) {
  uint64_t errors = 0;
  for (const HandlerLife* life : group.lives) errors += life->errors.load(std::memory_order_relaxed);
  return errors;
}

void wake_head(PaceRun& pace) {
  pace.idle_until_ns.store(INT64_MIN, std::memory_order_release);
  pace.run->notify(pace);
}

} // namespace

GroupRun::ItemPlace& GroupRun::item(uint64_t ordinal) { return items[ordinal & pace->mask]; }
GroupRun::FiringPlace& GroupRun::firing(uint64_t first) { return firings[first & pace->mask]; }

StepResult GiveRun::advance(uint64_t ordinal) {
  if (!inputs_done(*this, ordinal)) return StepResult::waiting;
  const mr_tick_info& info = pace->info(ordinal);
  std::vector<Slot>& slots = items[ordinal & pace->mask];
  const bool is_void = later_ticks_void(*run, info);
  const bool waits_for_room = waiting_for == ordinal; // its inputs were taken, and are held
  Cause cause = Cause::failed;
  if (!is_void && !waits_for_room) cause = take_inputs(*this, ordinal, slots);
  if (is_void || !is_item(*this, info.index, slots)) {
    if (waits_for_room)
      for (Slot& slot : slots) release(slot);
    waiting_for = UINT64_MAX;
    settle_empty(*this, ordinal, is_void ? Cause::failed : all_pass_over(*this, info.index) ? Cause::every : cause);
    return StepResult::settled;
  }
  if (!waits_for_room)
    for (const Slot& slot : slots) hold(slot);
  {
    const std::lock_guard lock(group->mutex);
    // Without a budget the time of an item is for the report alone, and a look at the clock costs more than the rest.
    const int64_t now = group->plan->budget_ns > 0 ? run->now_ns() : group->looked_ns;
    come_in(*this, now);
    if (!group->collector->give(give->stream, ordinal, now, rows_of(*this, slots), info.media_time_ns)) {
      waiting_for = ordinal;
      return StepResult::waiting;
    }
    owed.push_back(ordinal);
    note_owed(*this);
  }
  waiting_for = UINT64_MAX;
  wake_head(*group->pace);
  return StepResult::settled;
}

void leave_group(GiveRun& give, bool for_good) {
  GroupRun& group = *give.group;
  {
    const std::lock_guard lock(group.mutex);
    if (give.is_in_collector) group.collector->stream_ended(give.give->stream);
    if (for_good && !give.is_over) --group.gives_open;
    give.is_over = give.is_over || for_good;
    // Its place is free for the next epoch once its items are settled, which is before that begins.
    give.has_left = give.is_in_collector;
  }
  wake_head(*group.pace);
}

// ---- firing --------------------------------------------------------------------------------------------------------

namespace {

GiveRun& give_of(const GroupRun& group, uint32_t stream) { return *group.by_stream[stream]; }

// Called under the group's mutex: an item that does not fire.
void drop(GroupRun& group, const batch::Dropped& dropped) {
  GiveRun& give = give_of(group, dropped.item.stream);
  const Cause cause = dropped.cause == batch::DropCause::late ? Cause::late : Cause::failed;
  count_dropped(give, dropped);
  clear_outputs(give, dropped.item.ordinal, cause);
  settle_item(give, dropped.item.ordinal);
  group.pace->stirred = true;
}

// Makes the item the tick of an ordinal of the group's pace.
void lay_out(GroupRun& group, uint64_t ordinal, const batch::Item& item) {
  PaceRun& pace = *group.pace;
  GiveRun& give = give_of(group, item.stream);
  group.item(ordinal) = {&give, item.ordinal};
  mr_tick_info& info = pace.infos[ordinal & pace.mask];
  info = give.pace->info(item.ordinal);
  if (item.due_ns != batch::kNever) info.deadline_ns = item.due_ns;
  pace.tick_index[ordinal & pace.mask].store(info.index, std::memory_order_relaxed);
  pace.tick_media_ns[ordinal & pace.mask].store(info.media_time_ns, std::memory_order_relaxed);
  PaceRun::Latency& latency = pace.latency[ordinal & pace.mask];
  const bool is_measured = give.pace->is_measured(item.ordinal);
  latency.ordinal.store(is_measured ? ordinal : UINT64_MAX, std::memory_order_relaxed);
  latency.from_ns = give.pace->from_ns(item.ordinal);
  latency.error_ns = give.pace->from_error_ns(item.ordinal);
  const std::vector<Slot>& slots = give.items[item.ordinal & give.pace->mask];
  for (size_t o = 0; o < pace.entry->outputs.size(); ++o) {
    pace.entry->outputs[o]->at(ordinal) = slots[o];
    if (pace.entry->outputs[o]->holds) hold(slots[o]);
  }
}

// True if the first of the firings in flight is not over yet, and another one would be too many.
bool is_full(PaceRun& pace, uint64_t first) {
  if (first < pace.window) return false;
  const uint64_t must_be_done = first - pace.window + pace.plan->places;
  if (pace.completed_seen < must_be_done) pace.completed_seen = completed(pace);
  return pace.completed_seen < must_be_done;
}

void look_again(PaceRun& pace, int64_t at_ns) {
  pace.due_ns.store(at_ns, std::memory_order_relaxed);
  pace.idle_until_ns.store(at_ns, std::memory_order_relaxed);
}

} // namespace

bool admit_firing(PaceRun& pace) {
  GroupRun& group = *pace.group;
  const uint64_t first = pace.admitted.load(std::memory_order_relaxed);
  if (is_full(pace, first)) return false;
  uint32_t count = 0;
  bool is_over = false;
  {
    const std::lock_guard lock(group.mutex);
    look_again(pace, INT64_MAX); // before the look: whoever gives meanwhile sets it back
    const int64_t now = group.looked_ns = pace.run->now_ns();
    const batch::Step& next = group.collector->next(now);
    for (const batch::Dropped& dropped : next.dropped) drop(group, dropped);
    if (!next.firing) {
      look_again(pace, next.look_again_ns);
      is_over = group.gives_open == 0 && group.collector->rows_waiting() == 0;
    } else {
      count = static_cast<uint32_t>(next.firing->items.size());
      for (uint64_t place = first; place < first + pace.plan->places; ++place) retire(pace, place);
      for (uint32_t i = 0; i < count; ++i) lay_out(group, first + i, next.firing->items[i]);
      group.firing(first) = {count, next.firing->slot, errors_of(group)};
      count_firing(group, *next.firing, now);
    }
  }
  if (count == 0) {
    if (pace.stirred) pace.run->notify(pace); // for what reads the items that were dropped
    if (is_over) end_pace(pace);
    return false;
  }
  pace.admitted.store(first + pace.plan->places, std::memory_order_release);
  for (uint32_t i = 0; i < count; ++i)
    if (pace.entry->shared->wanted)
      pace.entry->shared->stamp(first + i).store(first + i + 1, std::memory_order_release);
  pace.run->notify(pace);
  return true;
}

// ---- dealing -------------------------------------------------------------------------------------------------------

namespace {

bool is_settled(const DealRun& deal, uint64_t ordinal) {
  for (const StepStamps* before : deal.after)
    if (before && !before->settled(ordinal)) return false;
  for (const StepRun* before : deal.after_on_device)
    if (!before->on.fences[ordinal & deal.pace->mask].done()) return false;
  return std::all_of(deal.inputs.begin(), deal.inputs.end(), [&](const InputRun& input) {
    return (!input.producer || input.producer->settled(ordinal)) && input.output->at(ordinal).fence.done();
  });
}

// A copy of an item that lies among the others of its firing.
Slot copied_out(OutputRun& output, uint64_t ordinal, const Slot& made) {
  memory::Block& block = output.ring->take(ordinal);
  *block.value = *made.value;
  if (made.value->header.extent_bytes > 0) std::memcpy(block.data, made.data, made.value->header.extent_bytes);
  return value_in(block);
}

void give_back(DealRun& deal, uint64_t ordinal) {
  const auto [give, of] = deal.group->item(ordinal);
  for (size_t o = 0; o < give->outputs.size(); ++o) {
    OutputRun& output = *give->outputs[o];
    const uint32_t result = give->give->results[o];
    if (result == plan::kNone) { // nobody reads it where it was made
      settle(output, of, nothing(Cause::silent));
      continue;
    }
    const Slot& made = deal.inputs[result].output->at(ordinal);
    if (!present(*deal.run, made)) {
      settle(output, of, nothing(made.cause));
    } else if (output.plan->owns) {
      settle(output, of, copied_out(output, of, made));
    } else {
      Slot& slot = settle(output, of, made);
      slot.presence_pending = false;
      if (output.holds) hold(slot);
    }
  }
  // Not once another firing takes the place: until then streams would have fewer blocks than their windows need.
  for (OutputRun* taken : deal.pace->entry->outputs)
    if (taken->holds) release(taken->at(ordinal));
  settle_item(*give, of);
}

// Warns once of a budget that one item cannot keep even if it waits for nothing. Late items are not dropped then.
void mind_budget(GroupRun& group) {
  if (!group.controller || group.has_warned || group.collector->forecast().curve().is_guessed(0)) return;
  const int64_t least_ns = group.controller->least_budget_ns(group.collector->forecast());
  if (least_ns <= group.budget.budget_ns) return;
  group.has_warned = true;
  tell_budget(*group.pace->run, group.plan->name, group.budget.budget_ns, least_ns);
}

} // namespace

StepResult DealRun::advance(uint64_t first) {
  const GroupRun::FiringPlace firing = group->firing(first);
  for (uint64_t ordinal = first; ordinal < first + firing.count; ++ordinal)
    if (!is_settled(*this, ordinal)) return StepResult::waiting;
  {
    const std::lock_guard lock(group->mutex);
    for (uint64_t ordinal = first; ordinal < first + firing.count; ++ordinal) give_back(*this, ordinal);
    const int64_t now = group->looked_ns = run->now_ns();
    count_dealt(*group, first, now);
    // The time of a call that fails says nothing of other calls.
    group->collector->firing_ended(firing.slot, now, errors_of(*group) == firing.errors);
    mind_budget(*group);
  }
  for (uint64_t ordinal = first; ordinal < first + firing.count; ++ordinal) stamp(*this, ordinal);
  wake_head(*pace);
  return StepResult::settled;
}

} // namespace millrace::exec
