// Shares the segments out among the workers: each worker's own segments, those that it helps with, and the paces that
// wake it.
#include <algorithm>

#include "exec/build.h"
#include "exec/channel.h"
#include "exec/run_state.h"
#include "exec/threads.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

void Workers::share_out() {
  for (auto& worker : workers_) {
    worker->own.clear();
    worker->others.clear();
    worker->paces.clear();
    worker->aligns.clear();
  }
  run_.wakeup.helpers.clear();
  for (auto& segment : run_.planned.segments)
    if (!segment->done.load()) workers_[segment->plan->home]->own.push_back(segment.get());
  // A worker without segments of its own helps those that have several. There are no more such helpers than there are
  // extra segments.
  size_t helpers = 0;
  for (const auto& worker : workers_)
    if (worker->own.size() > 1) helpers += worker->own.size() - 1;
  for (uint32_t w = 0; w < workers_.size() && w < run_.planned.plan.workers; ++w) {
    Worker& worker = *workers_[w];
    if (worker.own.empty() && helpers == 0) continue;
    if (worker.own.empty()) --helpers;
    for (auto& segment : run_.planned.segments)
      if (!segment->done.load() && segment->plan->home != w && !segment->plan->pinned)
        worker.others.push_back(segment.get());
    if (!worker.others.empty()) run_.wakeup.helpers.add(w);
  }
  for (auto& worker : workers_) record_times(*worker);
  settle_homes(run_);
}

// Notes what a worker waits for besides its bell.
void Workers::record_times(Worker& worker) const {
  for (const SegmentRun* segment : worker.own)
    if (std::find(worker.paces.begin(), worker.paces.end(), segment->pace) == worker.paces.end())
      worker.paces.push_back(segment->pace);
  for (const ResolveRun* step : run_.planned.timed_steps)
    if (step->segment->plan->home == worker.index) worker.aligns.push_back(step);
  const auto goes_by_time = [](const SegmentRun* segment) {
    return segment->head && segment->pace->clock->plan->realtime();
  };
  worker.has_beats = std::any_of(worker.own.begin(), worker.own.end(), goes_by_time) ||
                     std::any_of(worker.others.begin(), worker.others.end(), goes_by_time);
}

} // namespace millrace::exec
