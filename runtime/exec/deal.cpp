// Deals the results of a firing out to the ticks whose items it had; see group.h.
#include "exec/group.h"

#include <algorithm>
#include <cstring>

#include "exec/channel.h"
#include "exec/firing.h"
#include "exec/handler_run.h"
#include "exec/run_log.h"
#include "exec/settle.h"
#include "plan/group_plan.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/step.h"

namespace millrace::exec {

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

// Copies one item's rows out of the firing's dense block.
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
  // Released now and not when the next firing takes the rows: streams need these blocks for their windows.
  for (OutputRun* taken : deal.pace->entry->outputs)
    if (taken->holds) release(taken->at(ordinal));
  settle_item(*give, of);
}

// Warns once of a budget that one item cannot keep even if it waits for nothing. Late items are not dropped then.
void warn_of_budget(GroupRun& group) {
  if (!group.controller || group.has_warned || group.collector->forecast().curve().is_guessed(0)) return;
  const int64_t least_ns = group.controller->least_budget_ns(group.collector->forecast());
  if (least_ns <= group.budget.budget_ns) return;
  group.has_warned = true;
  log_budget(*group.pace->run, group.plan->name, group.budget.budget_ns, least_ns);
}

} // namespace

StepResult DealRun::advance(uint64_t first) {
  const GroupRun::FiringState firing = group->firing(first);
  for (uint64_t ordinal = first; ordinal < first + firing.count; ++ordinal)
    if (!is_settled(*this, ordinal)) return StepResult::waiting;
  {
    const std::lock_guard lock(group->mutex);
    for (uint64_t ordinal = first; ordinal < first + firing.count; ++ordinal) give_back(*this, ordinal);
    const int64_t now = group->looked_ns = run->now_ns();
    count_dealt(*group, first, now);
    // The time of a call that fails says nothing of other calls.
    group->collector->firing_ended(firing.slot, now, group->errors() == firing.errors);
    warn_of_budget(*group);
  }
  for (uint64_t ordinal = first; ordinal < first + firing.count; ++ordinal) stamp(*this, ordinal);
  run->wake_head(*pace);
  return StepResult::settled;
}

} // namespace millrace::exec
