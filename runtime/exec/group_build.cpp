// Builds the groups of a run; see group.h.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "exec/channel.h"
#include "exec/group.h"
#include "exec/handler_run.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "graph/graph.h"
#include "graph/quantity.h"
#include "plan/group_plan.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// The time of an item of a group about which nothing was measured yet.
constexpr int64_t kUnknownItemNs = 300'000;
// The part of the time that a group may keep its handlers busy.
constexpr double kUseMax = 0.8;

// The times of firings by their items, as far as the plan knows them. With lanes two firings are taken to run side by
// side.
batch::ServiceCurve first_curve(const plan::Plan& plan, const plan::GroupPlan& group) {
  uint32_t lanes = 1;
  for (const uint32_t h : group.handlers) lanes = std::max(lanes, plan.handlers[h].lanes);
  std::vector<batch::BucketTime> buckets;
  for (uint32_t items = 1; items <= group.items_max; items *= 2) {
    const bool is_known = buckets.size() < group.curve_ns.size();
    const int64_t ns = is_known ? group.curve_ns[buckets.size()] : kUnknownItemNs * items;
    buckets.push_back({items, ns, ns, lanes > 1 && plan.workers > 1 ? ns / 2 : 0, !is_known});
  }
  return batch::ServiceCurve(buckets);
}

std::unique_ptr<batch::Rule> make_rule(const plan::Plan& plan, GroupRun& group, bool measures) {
  const plan::GroupPlan& of = *group.plan;
  if (measures) return std::make_unique<batch::EachSizeRule>(of.items_max);
  if (of.rule == plan::BatchRule::free) return std::make_unique<batch::FreeRule>(of.size);
  if (of.rule == plan::BatchRule::fixed) {
    auto rule = std::make_unique<batch::FixedRule>(of.size, of.wait_ns);
    group.fixed = rule.get();
    return rule;
  }
  double rate = 0;
  int64_t fastest_ns = 0;
  for (const GiveRun* give : group.gives) {
    const plan::Clock& clock = plan.clocks[give->pace->plan->clock];
    const int64_t period = item_period_ns(clock);
    if (period == 0) continue;
    rate += 1e9 / static_cast<double>(period);
    fastest_ns = fastest_ns == 0 ? period : std::min(fastest_ns, period);
  }
  group.budget = {of.budget_ns, kUseMax, of.drop_late};
  auto rule = std::make_unique<batch::Controller>(group.budget, rate, fastest_ns > 0 ? fastest_ns : of.budget_ns);
  group.controller = rule.get();
  return rule;
}

// The stream's `priority:`, which the reader of the file has checked. One that comes later has none.
uint32_t priority_of(const RunState& run, const plan::GroupPlan& plan, uint32_t stream) {
  const graph::Stream& item = run.planned.graph.find_set(plan.set)->items[stream];
  const auto field = std::find_if(item.fields.begin(), item.fields.end(),
                                  [](const graph::Param& param) { return param.name == "priority"; });
  const bool is_given = field != item.fields.end() && !item.is_seat;
  return is_given
             ? static_cast<uint32_t>(std::clamp(graph::read_whole(field->text).value_or(0), int64_t{0}, int64_t{100}))
             : 0;
}

void make_group(RunState& run, const plan::GroupPlan& plan) {
  auto group = std::make_unique<GroupRun>();
  group->plan = &plan;
  group->pace = run.planned.paces[plan.clock].get();
  group->pace->group = group.get();
  group->pace->entry = &as<EntryRun>(*run.planned.step_runs[plan.entry]);
  const size_t ring_slots = group->pace->plan->slots;
  group->items.resize(ring_slots);
  group->by_stream.resize(plan.gives.size());
  group->firings.resize(ring_slots);
  auto& deal = as<DealRun>(*run.planned.step_runs[plan.deal]);
  deal.group = group.get();
  deal.takes_firings = group->pace->entry->takes_firings = true;
  for (const uint32_t s : plan.gives) {
    if (s == plan::kNone) continue;
    auto& give = as<GiveRun>(*run.planned.step_runs[s]);
    give.group = group.get();
    give.give = &give.plan->as<plan::GiveStep>();
    give.priority = priority_of(run, plan, give.give->stream);
    give.totals = LineVector<InputTotals>(give.inputs.size());
    for (size_t i = 0; i < give.inputs.size(); ++i) give.inputs[i].totals = &give.totals[i];
    give.items.resize(give.pace->plan->slots);
    for (std::vector<Slot>& slots : give.items) slots.resize(give.inputs.size());
    give.owed.reserve(batch::kAllowanceMost);
    group->gives.push_back(&give);
    group->by_stream[give.give->stream] = &give;
  }
  for (const HandlerRun* step : run.planned.handlers)
    if (step->pace == group->pace) group->lives.push_back(step->life);
  group->gives_open = static_cast<uint32_t>(group->gives.size());
  begin_counts(*group);
  group->rule = make_rule(run.planned.plan, *group, run.options.measure_bodies);
  batch::Group of;
  of.streams_max = static_cast<uint32_t>(plan.gives.size());
  of.in_flight = plan.in_flight;
  of.budget_ns = plan.budget_ns;
  of.order = plan.budget_ns == 0 ? batch::Order::media_time : batch::Order::deadline;
  group->collector = std::make_unique<batch::Collector>(of, first_curve(run.planned.plan, plan), *group->rule);
  run.planned.groups.push_back(std::move(group));
}

} // namespace

void make_groups(RunState& run) {
  for (const plan::GroupPlan& plan : run.planned.plan.groups)
    if (plan.entry != plan::kNone) make_group(run, plan);
}

int64_t item_period_ns(const plan::Clock& clock) {
  const bool has_rate = clock.realtime() && clock.rate.numerator > 0;
  return has_rate ? 1'000'000'000 * clock.rate.denominator / clock.rate.numerator : 0;
}

} // namespace millrace::exec
