// Calls a handler for several items at once; see items_run.h.
#include "exec/items_run.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "exec/check_call.h"
#include "exec/failure.h"
#include "exec/firing.h"
#include "exec/group.h"
#include "exec/pending.h"
#include "exec/run_options.h"
#include "exec/settle.h"
#include "exec/sink_latency.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

uint64_t bytes_of(const mr_input& input) { return input.value ? input.value->header.extent_bytes : 0; }

// Takes the inputs of an item that is called, which passes_over() has put into raw_inputs.
void take_item(ItemsRun& step, uint64_t ordinal) {
  ItemsRun::Row& row = step.rows[step.called_items];
  row.ordinal = ordinal;
  row.failure.clear();
  row.call.context = {&step, ordinal, nullptr, nullptr};
  row.call.context.failure = &row.failure;
  std::copy(step.raw_inputs.begin(), step.raw_inputs.end(), row.call.raw_inputs.begin());
  for (mr_output& output : row.call.raw_outputs) output.state = MR_OUTPUT_SILENT;
  row.call.tick.info = &step.pace->info(ordinal);
  row.call.tick.ended = step.tick.ended;
  row.call.tick.stream = step.pace->group->item(ordinal).give->give->stream;
  step.ticks[step.called_items++] = &row.call.tick;
}

// True if the bytes of the input lie side by side in the items' order.
bool lie_side_by_side(const ItemsRun& step, size_t input) {
  for (uint32_t i = 0; i + 1 < step.called_items; ++i) {
    const mr_input &at = step.rows[i].call.raw_inputs[input], &next = step.rows[i + 1].call.raw_inputs[input];
    if (at.data + bytes_of(at) != next.data) return false;
  }
  return true;
}

void gather_rows(ItemsRun& step, size_t input) {
  if (lie_side_by_side(step, input)) return;
  auto* to = reinterpret_cast<uint8_t*>(step.gathered[input].get());
  for (uint32_t i = 0; i < step.called_items; ++i) {
    mr_input& of = step.rows[i].call.raw_inputs[input];
    if (bytes_of(of) > 0) std::memcpy(to, of.data, bytes_of(of));
    of.data = to;
    to += bytes_of(of);
  }
}

mr_status call_items(ItemsRun& step) {
  mr_status worst = MR_OK;
  for (uint32_t begin = 0; begin < step.called_items; begin += step.items_max) {
    const uint32_t count = std::min(step.items_max, step.called_items - begin);
    mr_status status = step.process_items(step.self, &step.ticks[begin], count);
    if (status == MR_OK && step.finish_items) status = step.finish_items(step.self, &step.ticks[begin], count);
    if (status < 0)
      for (uint32_t i = begin; i < begin + count; ++i) step.rows[i].call.context.has_failed = true;
    if (status != MR_OK) worst = status;
  }
  return worst;
}

mr_status timed_call(ItemsRun& step) {
  RunState& run = *step.run;
  SegmentRun& segment = *step.segment;
  step.context.ordinal = step.rows[0].ordinal;
  step.tick.info = step.rows[0].call.tick.info;
  if (run.changes_admitted.load(std::memory_order_acquire) != step.life->changes_seen)
    apply_changes(step, change_index(step, step.rows[0].ordinal));
  segment.inside.store(&step, std::memory_order_relaxed);
  ++step.life->other_calls;
  trace_tiny_calls(segment);
  const bool timed = !run.is_virtual && (!step.short_calls || segment.careful.load(std::memory_order_relaxed));
  const bool traced = timed || segment.traced;
  const int64_t begin = timed ? run.now_ns() : 0, traced_begin = traced ? trace_ticks() : 0;
  const mr_status status = call_items(step);
  if (traced) trace_call(step, traced_begin, trace_ticks());
  if (timed) {
    const int64_t took = run.now_ns() - begin;
    sample(step, took);
    if (!step.by_items.empty() && std::has_single_bit(step.called_items))
      step.by_items[static_cast<size_t>(std::countr_zero(step.called_items))].add(took);
  }
  return status;
}

void fail_item(ItemsRun& step, ItemsRun::Row& row) {
  void_outputs(step, row.call.raw_outputs);
  fail_outputs(step, row.call.raw_outputs, row.call.raw_inputs);
  row.call.context.has_failed = true;
}

// Checks what the call said of each item, and applies the policy to failures: to one of the call once, to those of
// items one by one.
void end_items(ItemsRun& step, mr_status status) {
  const bool leaves = status == MR_INTERRUPTED && step.run->stopping.load(std::memory_order_relaxed);
  if (status == MR_END) step.run->stop();
  for (uint32_t i = 0; i < step.called_items; ++i) {
    ItemsRun::Row& row = step.rows[i];
    TickContext& context = row.call.context;
    const bool of_call = context.has_failed && row.failure.empty();
    if (!context.has_failed) {
      const mr_status own = status_of_call(step, MR_OK, row.call.raw_outputs, row.call.raw_inputs);
      context.has_failed = own < 0;
      if (own >= 0) {
        mark_stream(step, row.call.tick.stream, row.call.raw_outputs);
        continue;
      }
    } else if (!row.failure.empty()) {
      step.instance->set_error(row.failure);
    }
    fail_item(step, row);
    // A call that has failed is one failure, said at its first item.
    const bool is_said = of_call && i % step.items_max != 0;
    if (!is_said && !leaves) apply_on_error(step, row.call.tick.info->index);
  }
}

void settle_items(ItemsRun& step) {
  for (uint32_t i = 0; i < step.called_items; ++i) {
    ItemsRun::Row& row = step.rows[i];
    const Cause cause = row.call.context.has_failed ? Cause::error : Cause::silent;
    settle_outputs(step, row.ordinal, row.call.raw_outputs, row.call.raw_inputs, cause);
    stamp(step, row.ordinal);
    if (step.pace->is_measured(row.ordinal)) record_sink_latency(step, row.ordinal);
  }
}

} // namespace

StepResult ItemsRun::advance(uint64_t first) {
  if (std::exchange(calling, false)) { // its virtual time has passed
    settle_items(*this);
    return StepResult::settled;
  }
  const uint32_t count = pace->group->firing(first).count;
  for (uint64_t ordinal = first; ordinal < first + count; ++ordinal)
    if (!ready(*this, ordinal)) return StepResult::waiting;
  called_items = 0;
  for (uint64_t ordinal = first; ordinal < first + count; ++ordinal)
    if (!passes_over(*this, ordinal)) take_item(*this, ordinal);
  if (called_items == 0) return StepResult::settled;
  for (size_t i = 0; i < gathered.size(); ++i)
    if (gathered[i]) gather_rows(*this, i);
  end_items(*this, timed_call(*this));
  if (run->is_virtual && run->options.cost_ns) {
    const int64_t cost = run->options.items_cost_ns ? run->options.items_cost_ns(handler->name, called_items)
                                                    : run->options.cost_ns(handler->name, first / pace->plan->rows);
    trace_call(*this, run->now_ns(), run->now_ns() + std::max<int64_t>(cost, 0));
    if (cost > 0) {
      segment->busy_until_ns = run->now_ns() + cost;
      times.add(cost);
      calling = true;
      return StepResult::calling;
    }
  }
  settle_items(*this);
  return StepResult::settled;
}

mr_status allocate_side_by_side(ItemsRun& step, mr_tick* const* items, uint32_t count, uint32_t output,
                                const uint64_t* bytes) {
  memory::Ring& ring = *step.outputs[output]->ring;
  uint8_t* at = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t ordinal = static_cast<TickContext*>(items[i]->context)->ordinal;
    const mr_output& before = items[i]->outputs[output];
    const bool has_one = before.state == MR_OUTPUT_OWN; // asked again in the same call: the same blocks
    memory::Block& block = has_one ? *reinterpret_cast<memory::Block*>(before.token) : ring.take(ordinal);
    if (!at) at = block.data;
    items[i]->outputs[output] = {block.record,  at,         bytes[i],
                                 MR_OUTPUT_OWN, UINT32_MAX, reinterpret_cast<uint64_t>(&block)};
    at += bytes[i];
  }
  return MR_OK;
}

} // namespace millrace::exec
