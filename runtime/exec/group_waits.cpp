// Describes in words what a group waits for; see group_waits.h.
#include "exec/group_waits.h"

#include <mutex>

#include "exec/group.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "plan/group_plan.h"
#include "plan/pace.h"
#include "plan/step.h"

namespace millrace::exec {

std::string words_of_ordinal(const PaceRun& pace, uint64_t ordinal) {
  if (pace.plan->kind != plan::PaceKind::batch) return " (tick " + std::to_string(ordinal) + ")";
  return " (firing " + std::to_string(ordinal / pace.plan->rows) + ")";
}

std::string name_with_stream(const StepRun& step) {
  const uint32_t clock = step.pace->plan->clock;
  const std::string name = as_now(*step.run, clock, step.plan->name);
  return step.plan->is<plan::GiveStep>() ? name + " of " + clock_now(*step.run, clock) : name;
}

std::string missing_items(GroupRun& group) {
  const std::lock_guard lock(group.mutex);
  const uint32_t waiting = group.collector->rows_waiting();
  const std::string items = "items of " + group.plan->set;
  return waiting == 0 ? items
                      : "more " + items + ", since " + std::to_string(waiting) + (waiting == 1 ? " waits" : " wait");
}

} // namespace millrace::exec
