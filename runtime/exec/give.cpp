// Puts the inputs of a stream's ticks into its group's collector, as items; see group.h.
#include "exec/group.h"

#include <algorithm>

#include "exec/channel.h"
#include "exec/handler_run.h"
#include "exec/settle.h"
#include "plan/group_plan.h"
#include "plan/pace.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

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

// True if any handler of the group that reads the stream would fire on this tick.
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

// Takes the inputs of the tick into `slots`. Returns why there is none, if a required one is missing. Ticks that are
// skipped by `every` are not counted, as for handlers.
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

// The rows that the item takes in a firing.
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
  if (give.membership == Membership::inside) return;
  // Its items are settled: that is before its next epoch begins.
  if (give.membership == Membership::leaving) give.group->collector->stream_removed(give.give->stream);
  const plan::Clock& clock = *give.pace->clock->plan;
  give.group->collector->stream_added(give.give->stream, {item_period_ns(clock), give.priority, give.give->allowance},
                                      now_ns);
  give.membership = Membership::inside;
}

void record_owed(GiveRun& give) {
  give.oldest_owed.store(give.owed.empty() ? UINT64_MAX : give.owed.front(), std::memory_order_release);
}

} // namespace

void settle_item(GiveRun& give, uint64_t ordinal) {
  if (give.shared->wanted) give.shared->stamp(ordinal).store(ordinal + 1, std::memory_order_release);
  for (Slot& slot : give.items[ordinal & give.pace->mask]) release(slot);
  std::erase(give.owed, ordinal);
  record_owed(give);
}

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
    record_owed(*this);
  }
  waiting_for = UINT64_MAX;
  run->wake_head(*group->pace);
  return StepResult::settled;
}

void leave_group(GiveRun& give, bool for_good) {
  GroupRun& group = *give.group;
  {
    const std::lock_guard lock(group.mutex);
    if (give.membership == Membership::inside) group.collector->stream_ended(give.give->stream);
    if (for_good && give.membership != Membership::over) --group.gives_open;
    if (for_good)
      give.membership = Membership::over;
    else if (give.membership == Membership::inside)
      give.membership = Membership::leaving;
  }
  group.pace->run->wake_head(*group.pace);
}

} // namespace millrace::exec
