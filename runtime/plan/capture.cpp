// Regions: runs of capturable device handlers that fire on the same ticks, recorded once per ring slot and replayed
// as one (semantics.md 4.5).
#include <algorithm>

#include "plan/draft.h"

namespace millrace::plan {

namespace {

bool capturable(const Plan& plan, const Step& step) {
  return step.kind == StepKind::handler && step.domain != 0 &&
         (plan.handlers[step.handler].info->traits & MR_TRAIT_CAPTURABLE) && step.every == 1;
}

// An input whose slot is no function of the index keeps its consumer on streams.
bool slots_follow_the_index(const Plan& plan, const Step& step) {
  for (const StepInput& input : step.inputs) {
    if (input.output == kNone) continue;
    const Output& output = plan.outputs[input.output];
    if (output.origin != kNone || input.keeps > 0 || input.repeat_last || input.delay > 0) return false;
  }
  return true;
}

} // namespace

void capture(Draft& draft) {
  Plan& plan = draft.plan;
  for (const Segment& segment : plan.segments) {
    if (segment.domain == 0) continue;
    uint32_t open = kNone;
    for (uint32_t s : segment.steps) {
      Step& step = plan.steps[s];
      if (!capturable(plan, step) || !slots_follow_the_index(plan, step)) {
        open = kNone;
        if (capturable(plan, step))
          plan.notes.push_back(step.name +
                               " runs on a stream: the slot of one of its inputs is no function of the index");
        continue;
      }
      if (open == kNone) {
        Region region;
        region.domain = segment.domain;
        plan.regions.push_back(region);
        open = static_cast<uint32_t>(plan.regions.size() - 1);
      }
      step.region = open;
      plan.regions[open].steps.push_back(s);
    }
  }
}

} // namespace millrace::plan
