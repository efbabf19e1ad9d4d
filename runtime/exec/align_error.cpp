// Adds up the clock errors of two ticks that `align` compares; see align_error.h.
#include "exec/align_error.h"

#include <algorithm>

#include "exec/channel.h"
#include "exec/run_state.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

void record_align_error(ResolveRun& step, uint64_t ordinal, ChannelRun& channel) {
  const PaceRun& pace = *step.pace;
  if (!pace.is_measured(ordinal)) return;
  int64_t other_ns = -1;
  const auto compare = [&](const QueuedTick& tick) {
    if (tick.from_ns != kNotMeasured) other_ns = std::max(other_ns, tick.from_error_ns);
  };
  if (channel.has_current) compare(channel.current);
  if (channel.count > 0) compare(channel.at(0));
  const int64_t error_ns = pace.from_error_ns(ordinal) + other_ns;
  if (other_ns < 0 || error_ns <= step.error_ns) return;
  if (step.run->planned.plan.are_timed_separately(pace.plan->clock, channel.from->pace->plan->clock))
    step.error_ns.set(error_ns);
}

} // namespace millrace::exec
