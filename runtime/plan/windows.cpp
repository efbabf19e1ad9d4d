// Computes the window that a pace needs; see windows.h.
#include "plan/windows.h"

#include <algorithm>

#include "plan/draft.h"
#include "plan/memory.h"
#include "plan/order.h"

namespace millrace::plan {

namespace {

// The longest path of a pace. A step adds `own(step)`, unless `same` says that it is in one unit with its producer.
template <class Own, class Same>
uint32_t longest_way(const Plan& plan, uint32_t pace, const Own& own, const Same& same) {
  std::vector<uint32_t> length(plan.steps.size(), 0);
  uint32_t longest = 1;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (step.pace != pace) continue;
    length[s] = own(step);
    for (const StepInput& input : step.inputs) {
      if (input.output == kNone || input.delay > 0) continue;
      const uint32_t producer = plan.outputs[input.output].step;
      if (plan.steps[producer].pace != pace) continue;
      length[s] = std::max(length[s], length[producer] + (same(plan.steps[producer], step) ? 0 : own(step)));
    }
    longest = std::max(longest, length[s]);
  }
  return longest;
}

// Segments and lanes on the longest path.
uint32_t segments_in_a_row(const Plan& plan, uint32_t pace) {
  return longest_way(
      plan, pace, [&](const Step& step) { return plan.segments[step.segment].lanes; },
      [](const Step& producer, const Step& step) { return producer.segment == step.segment; });
}

} // namespace

bool has_lanes(const Plan& plan, uint32_t pace) {
  return std::any_of(plan.segments.begin(), plan.segments.end(),
                     [&](const Segment& segment) { return segment.pace == pace && segment.lanes > 1; });
}

uint32_t handlers_in_a_row(const Plan& plan, uint32_t pace) {
  return longest_way(
      plan, pace, [&](const Step& step) { return step.handler() == kNone ? 0 : plan.segments[step.segment].lanes; },
      [](const Step&, const Step&) { return false; });
}

uint32_t pending_in_a_row(const Plan& plan, uint32_t p) {
  const uint32_t base = base_level(plan, plan.paces[p]);
  uint32_t pending = 0;
  for (const Step& step : plan.steps)
    if (step.pace == p) pending = std::max(pending, step.settled_level() - base);
  return pending;
}

uint32_t in_flight_of(const Plan& plan, uint32_t pace) {
  const uint32_t path = segments_in_a_row(plan, pace);
  return has_lanes(plan, pace) ? path : std::min(path, kInFlightMax);
}

uint32_t wider_window(const Plan& plan, uint32_t p) {
  const Pace& pace = plan.paces[p];
  if (pace.room == pace.window) return pace.window;
  return std::clamp(in_flight_of(plan, p) + pending_in_a_row(plan, p), pace.window, pace.room);
}

} // namespace millrace::plan
