// Fires a group: takes the collector's next firing, and makes its items ordinals of the group's pace; see group.h.
#include "exec/group.h"

#include "exec/admission.h"
#include "exec/handler_run.h"
#include "exec/settle.h"
#include "exec/window.h"
#include "plan/pace.h"

namespace millrace::exec {

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
  const uint64_t must_be_done = first - pace.window + pace.plan->rows;
  if (pace.completed_seen < must_be_done) pace.completed_seen = completed(pace);
  return pace.completed_seen < must_be_done;
}

void look_again(PaceRun& pace, int64_t at_ns) {
  pace.due_ns.store(at_ns, std::memory_order_relaxed);
  pace.idle_until_ns.store(at_ns, std::memory_order_relaxed);
}

} // namespace

GroupRun::ItemTick& GroupRun::item(uint64_t ordinal) { return items[ordinal & pace->mask]; }
GroupRun::FiringState& GroupRun::firing(uint64_t first) { return firings[first & pace->mask]; }

uint64_t GroupRun::errors() const {
  uint64_t sum = 0;
  for (const HandlerLife* life : lives) sum += life->errors.load(std::memory_order_relaxed);
  return sum;
}

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
      for (uint64_t row = first; row < first + pace.plan->rows; ++row) retire(pace, row);
      for (uint32_t i = 0; i < count; ++i) lay_out(group, first + i, next.firing->items[i]);
      group.firing(first) = {count, next.firing->slot, group.errors()};
      count_firing(group, *next.firing, now);
    }
  }
  if (count == 0) {
    if (pace.stirred) pace.run->notify(pace); // for what reads the items that were dropped
    if (is_over) end_pace(pace);
    return false;
  }
  pace.admitted.store(first + pace.plan->rows, std::memory_order_release);
  for (uint32_t i = 0; i < count; ++i)
    if (pace.entry->shared->wanted)
      pace.entry->shared->stamp(first + i).store(first + i + 1, std::memory_order_release);
  pace.run->notify(pace);
  return true;
}

} // namespace millrace::exec
