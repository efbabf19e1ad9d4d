// Gives the finish() of an enqueuing body its inputs: the inputs of the body as the body had them, copies included, and
// the outputs of the body (semantics.md 4.4). So a step that writes over any of them comes after the finish step. The
// finish step is a reader outside the body's region, so these values also have their times if the body was captured
// with others.
#include "plan/draft.h"
#include "plan/step.h"

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
