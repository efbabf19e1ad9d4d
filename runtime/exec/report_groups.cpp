// Reports groups; see report_groups.h.
#include "exec/report_groups.h"

#include <mutex>

#include "exec/group.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "plan/group_plan.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

double us_of_ns(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

const char* word_of(plan::BatchRule rule) {
  switch (rule) {
    case plan::BatchRule::fixed: return "fixed";
    case plan::BatchRule::learnt: return "learnt";
    default: return "free";
  }
}

void report_firings(const GroupCounts& counts, GroupReport& out) {
  for (uint32_t items = 1; items < counts.firings.size(); ++items) {
    const uint64_t firings = counts.firings[items];
    if (firings > 0) out.firings_of[items] = firings;
    out.firings += firings;
    out.items += firings * items;
  }
  out.places_filled = counts.rows_filled;
  out.places = counts.rows;
  out.waiting_p50_us = us_of_ns(counts.waiting.quantile_ns(0.5));
  out.waiting_p99_us = us_of_ns(counts.waiting.quantile_ns(0.99));
  out.waiting_sum_us = us_of_ns(counts.waiting.sum_ns());
  for (size_t n = 0; n < counts.times.size(); ++n) {
    const Histogram& times = counts.times[n];
    if (times.count() > 0)
      out.buckets.push_back({uint32_t{1} << n, times.count(), us_of_ns(times.quantile_ns(0.5)),
                             us_of_ns(times.quantile_ns(0.99)), us_of_ns(times.sum_ns())});
  }
}

void report_late(const RunState& run, const GroupRun& group, GroupReport& out) {
  for (const GiveRun* give : group.gives) {
    const GroupCounts::ByStream& of = group.counts.streams[give->give->stream];
    if (of.settled_late + of.dropped_late == 0) continue;
    const std::lock_guard lock(run.seats_mutex);
    out.late.push_back({give->pace->clock->seat->name, of.settled_late, of.dropped_late});
  }
}

} // namespace

std::vector<GroupReport> report_groups(const RunState& run) {
  std::vector<GroupReport> groups;
  for (const auto& group : run.planned.groups) {
    const plan::GroupPlan& plan = *group->plan;
    GroupReport out;
    out.name = plan.name;
    out.set = plan.set;
    for (const uint32_t h : plan.handlers) out.handlers.push_back(run.planned.plan.handlers[h].name);
    out.rule = word_of(plan.rule);
    out.items_max = plan.items_max;
    out.in_flight = plan.in_flight;
    const std::lock_guard lock(group->mutex); // so that its counts are of one moment
    out.budget_ms = us_of_ns(group->controller ? group->budget.budget_ns : plan.budget_ns) / 1000;
    report_firings(group->counts, out);
    report_late(run, *group, out);
    if (const batch::Controller* controller = group->controller) {
      const batch::Forecast& forecast = group->collector->forecast();
      out.limit = controller->limit_items(forecast);
      out.limit_set_by = controller->budget_sets_limit(forecast) ? "budget" : "load";
      out.rate = controller->rate();
    }
    groups.push_back(std::move(out));
  }
  return groups;
}

} // namespace millrace::exec
