// Gathers paces into clusters and rings their workers; see cluster.h.
#include "exec/cluster.h"

#include <numeric>
#include <utility>

#include "exec/build.h"
#include "exec/channel.h"
#include "exec/group.h"
#include "exec/run_state.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

void Wakeup::ring_sleepers(const Cluster& cluster, const SegmentRun* moved) {
  cluster.homes.find([&](size_t home) {
    bells->ring(home);
    // A home that is about to sleep may find work in its last look, so one that heard the ring may be busy too.
    const SegmentRun* with = busy(home).load(std::memory_order_relaxed);
    if (with && (with != moved || cluster.homes_of_several.has(home))) ring_helper_of(home);
    return false;
  });
}

void Wakeup::ring_helper_of(size_t home) {
  helpers.find([&](size_t worker) { return worker != home && bells->ring(worker); });
}

void gather_clusters(RunState& run) {
  PlanRun& planned = run.planned;
  std::vector<size_t> joined_to(planned.paces.size()); // itself, or a pace before it
  std::iota(joined_to.begin(), joined_to.end(), size_t{0});
  const auto first_of = [&](size_t pace) {
    while (joined_to[pace] != pace) pace = joined_to[pace];
    return pace;
  };
  const auto join = [&](const PaceRun& a, const PaceRun& b) {
    const auto [first, second] = std::minmax({first_of(a.index), first_of(b.index)});
    joined_to[second] = first;
  };
  for (const auto& pace : planned.paces) {
    join(*pace, *planned.paces[pace->plan->clock]); // a clock's own pace has its number
    for (const PaceRun* leader : pace->leaders) join(*pace, *leader);
  }
  for (const auto& channel : planned.channels)
    if (channel->from && channel->to) join(*channel->from->pace, *channel->to->pace);
  for (const auto& group : planned.groups)
    for (const GiveRun* give : group->gives) join(*give->pace, *group->pace);
  for (size_t p = 0; p < planned.paces.size(); ++p) {
    if (joined_to[p] == p) planned.clusters.push_back(std::make_unique<Cluster>(planned.plan.threads));
    planned.paces[p]->cluster = joined_to[p] == p ? planned.clusters.back().get() : planned.paces[first_of(p)]->cluster;
  }
}

void settle_homes(RunState& run) {
  for (auto& cluster : run.planned.clusters) {
    cluster->homes.clear();
    cluster->homes_of_several.clear();
  }
  for (const auto& segment : run.planned.segments) {
    if (segment->done.load()) continue;
    Cluster& cluster = *segment->pace->cluster;
    const uint32_t home = segment->plan->home;
    (cluster.homes.has(home) ? cluster.homes_of_several : cluster.homes).add(home);
  }
}

} // namespace millrace::exec
