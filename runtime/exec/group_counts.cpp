// Counts what groups do; see group_counts.h.
#include "exec/group_counts.h"

#include <bit>
#include <string>

#include "exec/group.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "plan/group_plan.h"

namespace millrace::exec {

namespace {

// One in 64 of shorter firings is traced, as of short calls.
constexpr int64_t kShortFiringNs = 50'000;

size_t index_of(uint32_t bucket_items) { return static_cast<size_t>(std::bit_width(bucket_items) - 1); }

// The firing, and then its items, which are the ticks of streams.
void trace_firing(GroupRun& group, uint64_t first, const GroupCounts::UnderWay& ended) {
  const uint32_t step = group.plan->deal;
  const int64_t end = group.pace->run->trace_now();
  const uint64_t firing = (uint64_t{group.plan->clock} << kTraceIndexBits) + ended.firing->ordinal;
  ended.trace->add({ended.begun_ticks, end, firing, step, TraceKind::firing});
  for (size_t i = 0; i < ended.firing->items.size(); ++i)
    ended.trace->add({end, end, group.pace->info(first + i).trace_id, step, TraceKind::item});
}

} // namespace

void begin_counts(GroupRun& group) {
  GroupCounts& counts = group.counts;
  counts.firings.resize(group.plan->items_max + 1);
  counts.times.resize(index_of(group.plan->items_max) + 1);
  counts.streams.resize(group.plan->gives.size());
  for (uint32_t slot = 0; slot < group.plan->in_flight; ++slot)
    counts.under_way[slot].trace = &group.pace->run->add_trace("firings of " + group.plan->name +
                                                               (slot > 0 ? " (" + std::to_string(slot + 1) + ")" : ""));
}

void count_firing(GroupRun& group, const batch::Firing& firing, int64_t now_ns) {
  GroupCounts& counts = group.counts;
  ++counts.firings[firing.items.size()];
  counts.rows_filled += firing.rows;
  counts.rows += firing.bucket_items;
  for (const batch::Item& item : firing.items) counts.waiting.add(now_ns - item.given_ns);
  GroupCounts::UnderWay& begun = counts.under_way[firing.slot];
  begun.firing = &firing;
  begun.begun_ns = now_ns;
  begun.begun_ticks = group.pace->run->trace_now();
}

void count_dealt(GroupRun& group, uint64_t first, int64_t now_ns) {
  GroupCounts& counts = group.counts;
  const GroupCounts::UnderWay& ended = counts.under_way[group.firing(first).slot];
  counts.times[index_of(ended.firing->bucket_items)].add(now_ns - ended.begun_ns);
  for (const batch::Item& item : ended.firing->items)
    if (now_ns > item.due_ns) ++counts.streams[item.stream].settled_late;
  const bool is_traced = now_ns - ended.begun_ns >= kShortFiringNs || group.pace->run->options.trace_all ||
                         (ended.firing->ordinal & kTimedMask) == 0;
  if (is_traced) trace_firing(group, first, ended);
}

void count_dropped(GiveRun& give, const batch::Dropped& dropped) {
  if (dropped.cause != batch::DropCause::late) return;
  ++give.group->counts.streams[dropped.item.stream].dropped_late;
  const std::vector<Slot>& slots = give.items[dropped.item.ordinal & give.pace->mask];
  for (size_t i = 0; i < give.inputs.size(); ++i)
    if (slots[i].value) ++give.inputs[i].totals->dropped_late;
}

} // namespace millrace::exec
