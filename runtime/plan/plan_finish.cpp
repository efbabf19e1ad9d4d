// What finish() of a handler whose body enqueues is given: the inputs of the body as it had them, copies included, and
// what it made (semantics.md 4.4). So whoever writes over any of that comes behind it, and it comes with its times
// where the body was captured with others.
#include "plan/draft.h"

namespace millrace::plan {

void plan_finish(Draft& draft) {
  Plan& plan = draft.plan;
  for (Step& step : plan.steps) {
    if (!step.is<FinishStep>()) continue;
    const Step& body = plan.steps[step.as<FinishStep>().body];
    step.inputs = body.inputs;
    for (StepInput& input : step.inputs) {
      input.edge = kNone; // its deliveries are the body's
      input.keeps = 0;    // views end with it
      input.calls = false;
    }
    for (const uint32_t output : body.outputs) {
      StepInput made;
      made.output = output;
      made.required = false;
      step.inputs.push_back(made);
    }
  }
}

} // namespace millrace::plan
