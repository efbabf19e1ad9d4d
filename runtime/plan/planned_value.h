// Values as the plan knows them before the run makes any.
#pragma once

#include "plan/plan.h"

namespace millrace::plan {

// A value of the output's format with a first extent of 0 (semantics.md 8.5); a picture is 0 × 0.
mr_value empty_value(const Output& output);
// The value that stands for an input while a body is captured, before the first tick.
mr_value planned_value(const Output& output);

} // namespace millrace::plan
