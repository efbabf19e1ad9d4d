// Records values of live parameters as their ticks come; see param_values.h.
#include "exec/param_values.h"

#include <mutex>
#include <utility>

#include "exec/seats.h"
#include "exec/state.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

namespace {

RunState::Value value_of(const RunState::Change& change) {
  return {change.text, change.at_index, change.by, change.number};
}

} // namespace

void record_value(RunState& run, const RunState::Change& change) {
  run.values[{change.handler, change.param}].now = value_of(change);
}

void confirm_value(RunState& run, const RunState::Change& change) {
  const auto found = run.values.find({change.handler, change.param});
  if (found != run.values.end()) found->second.held = value_of(change); // else its stream has gone
}

void restore_value(RunState& run, const RunState::Change& change) {
  const auto found = run.values.find({change.handler, change.param});
  if (found == run.values.end() || found->second.now.number != change.number) return; // another change has come since
  if (found->second.held)
    found->second.now = *found->second.held;
  else
    run.values.erase(found);
}

void forget_values(RunState& run, uint32_t clock) {
  const std::lock_guard lock(run.changes_mutex);
  run.given_away.insert(clock);
  std::erase_if(run.values,
                [&](const auto& value) { return run.planned.plan.handlers[value.first.first].clock == clock; });
}

std::vector<HandlerValues> values_now(RunState& run) {
  const plan::Plan& plan = run.planned.plan;
  const std::lock_guard lock(run.changes_mutex);
  std::vector<HandlerValues> all;
  for (uint32_t h = 0; h < plan.handlers.size(); ++h) {
    const plan::HandlerPlan& handler = plan.handlers[h];
    const bool is_absent = run.clocks[handler.clock]->seat->vacant.load(std::memory_order_acquire);
    if (handler.step == plan::kNone || is_absent) continue;
    HandlerValues& values = all.emplace_back();
    values.handler = h;
    values.name = name_now(run, handler);
    values.is_as_planned = !run.given_away.contains(handler.clock);
    for (auto value = run.values.lower_bound({h, ""}); value != run.values.end() && value->first.first == h; ++value)
      values.changed.push_back(
          {value->first.second, value->second.now.text, value->second.now.tick, value->second.now.by});
  }
  return all;
}

} // namespace millrace::exec
