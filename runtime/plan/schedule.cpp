// Segments to threads: blocking handlers and named threads get their own, a device's segments share one that submits to
// it and does nothing else (a call on the host would hold up all that waits to be submitted: semantics.md 4.3), the
// rest prefer the worker with the least to do.
#include <algorithm>
#include <map>

#include "plan/draft.h"

namespace millrace::plan {

void schedule(Plan& plan) {
  plan.threads = plan.workers;
  std::map<std::string, uint32_t> named;
  std::map<uint32_t, uint32_t> submitters; // by domain
  std::vector<int64_t> load(plan.workers, 0);
  for (Segment& segment : plan.segments) {
    if (segment.blocking) {
      segment.home = plan.threads++;
      segment.pinned = true;
    } else if (!segment.thread.empty()) {
      const auto [at, fresh] = named.try_emplace(segment.thread, plan.threads);
      if (fresh) ++plan.threads;
      segment.home = at->second;
      segment.pinned = true;
    } else if (segment.domain != 0) {
      const auto [at, fresh] = submitters.try_emplace(segment.domain, plan.threads);
      if (fresh) ++plan.threads;
      segment.home = at->second;
      segment.pinned = true;
    } else {
      const auto least = std::min_element(load.begin(), load.end());
      segment.home = static_cast<uint32_t>(least - load.begin());
      for (uint32_t s : segment.steps) {
        const uint32_t handler = plan.steps[s].handler;
        *least += 1 + (handler == kNone ? 0 : plan.handlers[handler].cost_ns);
      }
    }
  }
}

} // namespace millrace::plan
