// Regions: runs of capturable device handlers that fire on the same ticks, recorded once per ring slot and replayed
// as one (semantics.md 4.5).
#include <algorithm>

#include "plan/domain.h"
#include "plan/draft.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/reachability.h"
#include "plan/step.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// True if the slot of every input is a function of the index. Otherwise the step stays on streams.
bool slots_follow_the_index(const Plan& plan, const Step& step) {
  for (const StepInput& input : step.inputs) {
    if (input.output == kNone) continue;
    const Output& output = plan.outputs[input.output];
    if (output.origin != kNone || input.keeps > 0 || input.repeat_last || input.delay > 0) return false;
    if (may_be_initial(plan, input.output)) return false;
  }
  return true;
}

// Returns "" if a body that is called before the first tick knows all that it is told of its inputs; else what varies.
std::string what_varies(const Plan& plan, const Step& step) {
  for (const StepInput& input : step.inputs) {
    if (input.output == kNone) continue;
    const Output& output = plan.outputs[input.output];
    const mr_format& format = output.format;
    bool fixed = true;
    if (format.kind == MR_KIND_IMAGE) fixed = format.size_kind == MR_DIM_FIXED;
    for (uint32_t d = 0; format.kind == MR_KIND_TENSOR && d < format.rank; ++d)
      fixed = fixed && format.shape_kind[d] == MR_DIM_FIXED;
    if (!fixed) return "the size of " + plan.steps[output.step].name + "." + output.name + " is not fixed";
  }
  for (const uint32_t o : step.outputs) { // a kernel counts records; other sizes come from the body, on each tick
    const uint32_t kind = plan.outputs[o].format.kind;
    if (kind != MR_KIND_IMAGE && kind != MR_KIND_TENSOR && kind != MR_KIND_RECORDS)
      return "the size of what it gives on " + plan.outputs[o].name + " varies";
  }
  return "";
}

// True if, with this step in the region, a path leads out of the region and back: replayed as one, the region would
// wait for itself. The steps of each region are joined in `waits`, because a region is replayed as one: a path that
// enters it may leave it by any of its steps.
bool leads_back(const Plan& plan, const Reachability& waits, uint32_t s, uint32_t region) {
  const std::vector<uint32_t>& steps = plan.regions[region].steps;
  const auto comes_back_to = [&](uint32_t member) {
    return std::any_of(waits.before(member).begin(), waits.before(member).end(), [&](uint32_t outside) {
      if (outside == s || plan.steps[outside].region == region) return false;
      return waits.leads(steps[0], outside) || waits.leads(s, outside);
    });
  };
  return comes_back_to(s) || std::any_of(steps.begin(), steps.end(), comes_back_to);
}

// The most bytes of a copy to the host that is part of its region's recording. Such copies are so small, and so few,
// that the way to the copy engine and back would take longer. They are made whether or not their readers fire.
constexpr uint64_t kRidesAlongMax = 4096;

void take_small_copies_along(Plan& plan) {
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    Step& step = plan.steps[s];
    if (!step.is<CopyStep>() || plan.domains[step.domain].bodies != Bodies::enqueued || step.inputs.size() != 1)
      continue;
    const Output& from = plan.outputs[step.inputs[0].output];
    const uint32_t region = plan.steps[from.step].region;
    const bool down = from.domain == step.domain && plan.in_host_memory(plan.outputs[step.outputs[0]].domain);
    if (region == kNone || !down || copied_bytes(from.format) > kRidesAlongMax) continue;
    step.region = region;
    plan.regions[region].steps.push_back(s);
  }
}

} // namespace

bool capturable(const Plan& plan, const Step& step) {
  return step.is<HandlerStep>() && !plan.on_host(step.domain) && (plan.type_of(step).traits & MR_TRAIT_CAPTURABLE) &&
         step.every == 1;
}

void capture(Draft& draft) {
  Plan& plan = draft.plan;
  if (plan.domains.size() == 1) return;
  Reachability waits = waits_of(plan);
  for (const Segment& segment : plan.segments) {
    if (plan.on_host(segment.domain)) continue;
    const bool enqueued = plan.domains[segment.domain].bodies == Bodies::enqueued;
    uint32_t open = kNone;
    for (uint32_t s : segment.steps) {
      Step& step = plan.steps[s];
      const std::string varies = enqueued && capturable(plan, step) ? what_varies(plan, step) : "";
      if (!varies.empty()) {
        open = kNone;
        plan.notes.push_back(step.name + " runs on a stream: " + varies);
        continue;
      }
      if (!capturable(plan, step) || !slots_follow_the_index(plan, step)) {
        open = kNone;
        if (capturable(plan, step))
          plan.notes.push_back(step.name +
                               " runs on a stream: the slot of one of its inputs is no function of the index");
        continue;
      }
      if (open != kNone && leads_back(plan, waits, s, open)) open = kNone;
      if (open == kNone) {
        Region region;
        region.domain = segment.domain;
        plan.regions.push_back(region);
        open = static_cast<uint32_t>(plan.regions.size() - 1);
      }
      step.region = open;
      plan.regions[open].steps.push_back(s);
      if (plan.regions[open].steps[0] != s) waits.join(plan.regions[open].steps[0], s);
    }
  }
  take_small_copies_along(plan);
}

} // namespace millrace::plan
