// Values as the plan knows them, before there is any.
#pragma once

#include "plan/plan.h"

namespace millrace::plan {

// A value of the output's format with a first extent of 0 (semantics.md 8.5); of a picture 0 × 0.
mr_value empty_value(const Output& output);
// What a body that is captured before the first tick is told of its inputs.
mr_value planned_value(const Output& output);

} // namespace millrace::plan
