// Finds the longest path to each sink; see predict.h.
#include "plan/predict.h"

#include <algorithm>
#include <tuple>

#include "plan/explained.h"
#include "plan/group_plan.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::plan {

namespace {

struct Way {
  double us = 0;
  uint32_t unknown = 0;
  friend bool operator<(const Way& a, const Way& b) { return std::tie(a.us, a.unknown) < std::tie(b.us, b.unknown); }
};

Way cost_of(const Plan& plan, uint32_t s) {
  const Step& step = plan.steps[s];
  if (step.is<CopyStep>()) {
    for (const TransferPlan& transfer : plan.transfers)
      if (transfer.step == s) return {transfer.predicted_us, 0};
  }
  if (step.handler() == kNone) return {};
  // A source that a thread of its own reads has given its value before the tick begins.
  if (step.is<SourceStep>() && plan.handlers[step.handler()].waits) return {};
  const int64_t cost = plan.handlers[step.handler()].cost_ns;
  return {static_cast<double>(cost) / 1000, cost == 0};
}

bool read_by_nobody(const Plan& plan, const Step& step) {
  if (!step.is<HandlerStep>()) return false;
  return std::none_of(step.outputs.begin(), step.outputs.end(), [&](uint32_t o) { return plan.outputs[o].connected; });
}

// By step: the longest way to its end.
std::vector<Way> find_ways(const Plan& plan) {
  // Steps are in an order that respects every edge without delay, and so are those of a segment.
  std::vector<Way> done(plan.steps.size()), busy(plan.segments.size());
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    Way way = step.segment == kNone ? Way{} : busy[step.segment];
    for (const StepInput& input : step.inputs)
      if (input.output != kNone && input.delay == 0) way = std::max(way, done[plan.outputs[input.output].step]);
    for (const uint32_t before : step.after) way = std::max(way, done[before]);
    if (step.is<EntryStep>() && step.channel() != kNone) way = std::max(way, done[plan.channels[step.channel()].from]);
    if (step.is<EntryStep>())
      for (const Feed& feed : plan.paces[step.pace].feeds) // the time on a link is not known
        if (is_whole(plan.channels[feed.channel])) way = std::max(way, done[plan.channels[feed.channel].from]);
    for (const GroupPlan& group : plan.groups)
      for (const uint32_t give : group.entry == s ? group.gives : std::vector<uint32_t>{})
        if (give != kNone) way = std::max(way, done[give]);
    const Way own = cost_of(plan, s);
    way.us += own.us;
    way.unknown += own.unknown;
    done[s] = way;
    if (step.segment != kNone) busy[step.segment] = way;
  }
  return done;
}

} // namespace

std::vector<PredictedPath> predict_paths(const Plan& plan) {
  const std::vector<Way> done = find_ways(plan);
  std::vector<PredictedPath> paths;
  for (uint32_t s = 0; s < plan.steps.size(); ++s)
    if (read_by_nobody(plan, plan.steps[s])) paths.push_back({s, done[s].us, done[s].unknown});
  return paths;
}

PredictedLatency predict_latency(const Plan& plan) {
  PredictedLatency latency;
  for (const PredictedPath& path : predict_paths(plan)) latency.us = std::max(latency.us, path.us);
  if (!plan.crossings.empty()) {
    const std::vector<Way> done = find_ways(plan);
    for (const CrossingPlan& crossing : plan.crossings)
      if (crossing.departs) latency.us = std::max(latency.us, done[plan.channels[crossing.channel].from].us);
  }
  for (const HandlerPlan& handler : plan.handlers) latency.unknown += handler.node == plan.node && handler.cost_ns == 0;
  return latency;
}

} // namespace millrace::plan
