// Live changes of the values of `batch:` (B16).
#include <algorithm>

#include "exec/group.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "graph/keys.h"
#include "observe/error_codes.h"
#include "plan/group_plan.h"
#include "plan/plan.h"

namespace millrace::exec {

namespace {

const std::string kPrefix = "batch.";
constexpr const char* kOfLearnt[] = {"budget", "late"};
constexpr const char* kOfFixed[] = {"size", "wait"};

// Null for a handler that takes no items. Any node is asked, and only the group's own runs the group: the plan of each
// has it.
const plan::GroupPlan* find_group(const plan::Plan& plan, const plan::HandlerPlan& handler) {
  const auto at = std::find_if(plan.groups.begin(), plan.groups.end(),
                               [&](const plan::GroupPlan& group) { return group.clock == handler.clock; });
  return at == plan.groups.end() ? nullptr : &*at;
}

bool is_one_of(const std::string& key, const char* const (&keys)[2]) { return key == keys[0] || key == keys[1]; }

// The values of a key as `batch:` would have them.
graph::Batch read(const std::string& param, const std::string& text) {
  graph::Batch batch;
  const auto& key = *graph::find_key(graph::batch_keys(), param.substr(kPrefix.size()));
  key.assign(batch, graph::read_setting(key, text, {"--set", 0, 0}));
  return batch;
}

} // namespace

void check_batch_change(const RunState& run, const plan::HandlerPlan& handler, const ParamChange& change) {
  const plan::GroupPlan* const group = find_group(run.planned.plan, handler);
  const std::string key = change.param.starts_with(kPrefix) ? change.param.substr(kPrefix.size()) : "";
  const auto refuse = [&](int code, const std::string& why, const std::string& nearest) {
    throw Failure(Error{
        code, change.param + " of " + change.handler + " cannot be changed while it runs", {}, {why}, nearest, ""});
  };
  if (!group) refuse(code::parameter_not_live, change.handler + " takes no items of streams", "");
  const bool measures = run.options.measure_bodies; // then each size has its turn
  const bool learns = !measures && group->rule == plan::BatchRule::learnt;
  const bool is_fixed = !measures && group->rule == plan::BatchRule::fixed;
  const std::string live = learns     ? "batch.budget and batch.late can be changed while it runs"
                           : is_fixed ? "batch.size and batch.wait can be changed while it runs"
                                      : "without real time a firing is what waits, so it has neither budget nor wait";
  if (!graph::find_key(graph::batch_keys(), key))
    refuse(code::unknown_parameter, live, nearest_name(key, graph::names_of(graph::batch_keys())));
  if (!(learns && is_one_of(key, kOfLearnt)) && !(is_fixed && is_one_of(key, kOfFixed)))
    refuse(code::parameter_not_live, live, "");
  try {
    const graph::Batch batch = read(change.param, change.text);
    if (batch.size > group->items_max)
      refuse(code::parameter_out_of_range, "a firing of it has at most " + std::to_string(group->items_max) + " items",
             "");
  } catch (const Failure& failure) {
    Error error = graph::as_assignment(failure.error());
    error.place = {};
    if (!error.edit.empty()) error.edit = change.handler + "." + kPrefix + error.edit;
    throw Failure(std::move(error));
  }
}

void take_batch_changes(GroupRun& group) {
  RunState& run = *group.pace->run;
  const std::scoped_lock lock(run.changes_mutex, group.mutex);
  for (const RunState::Change& change : run.changes) {
    const bool is_its = run.planned.plan.handlers[change.handler].clock == group.plan->clock;
    if (change.number < group.changes_seen || !is_its || !RunState::is_of_group(change)) continue;
    const graph::Batch batch = read(change.param, change.text);
    if (batch.budget_ns > 0) group.budget.budget_ns = batch.budget_ns;
    if (batch.late != graph::Late::automatic) group.budget.drop_late = batch.late == graph::Late::drop;
    if (group.fixed && batch.size > 0) group.fixed->set_size(batch.size);
    if (group.fixed && batch.wait_ns >= 0) group.fixed->set_wait(batch.wait_ns);
  }
  group.changes_seen = run.changes_admitted.load(std::memory_order_relaxed);
  if (!group.controller) return;
  group.controller->set(group.budget);
  group.collector->set_budget(group.budget.budget_ns);
  group.has_warned = false;
}

} // namespace millrace::exec
