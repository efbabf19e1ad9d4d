// Records what is submitted to a device, and names what was under way; see submissions.h.
#include "exec/submissions.h"

#include "device/device.h"
#include "exec/group_waits.h"
#include "exec/region.h"
#include "exec/run_state.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

std::string words_of_work(const RunState& run, const StepRun& step) {
  const uint32_t handler = step.plan->handler();
  if (handler == plan::kNone) return name_with_stream(step);
  if (!step.on.region || step.on.region->steps.size() < 2)
    return name_with_stream(step) + " (" + run.planned.plan.handlers[handler].type + ")";
  std::string names;
  const auto& steps = step.on.region->steps;
  for (size_t s = 0; s < steps.size(); ++s)
    names += (s == 0 ? "" : s + 1 < steps.size() ? ", " : " and ") + name_with_stream(*steps[s]);
  return "the region of " + names;
}

void Submissions::record(const StepRun& step, uint64_t ordinal, const device::Fence& fence) {
  Submission& latest = latest_[count_++ % kKept];
  latest.tick.store(step.pace->info(ordinal).index, std::memory_order_relaxed);
  latest.sequence.store(fence.sequence, std::memory_order_relaxed);
  latest.step.store(&step, std::memory_order_release);
}

// Streams run in order, so the first submission that a stream has not reached was under way. Bodies are preferred to
// copies, which may only have waited for them.
std::string Submissions::under_way(const RunState& run, const device::Device& device) const {
  const StepRun* found = nullptr;
  uint64_t found_sequence = 0, found_tick = 0;
  for (const Submission& submission : latest_) {
    const StepRun* const step = submission.step.load(std::memory_order_acquire);
    const uint64_t sequence = submission.sequence.load(std::memory_order_relaxed);
    if (!step || sequence <= device.reached(*step->on.stream)) continue;
    const bool copies = step->plan->is<plan::CopyStep>(), found_copies = found && found->plan->is<plan::CopyStep>();
    const bool better = !found || (!copies && found_copies) || (copies == found_copies && sequence < found_sequence);
    if (!better) continue;
    found = step;
    found_sequence = sequence;
    found_tick = submission.tick.load(std::memory_order_relaxed);
  }
  return found ? "; under way was " + words_of_work(run, *found) + " (tick " + std::to_string(found_tick) + ")" : "";
}

} // namespace millrace::exec
