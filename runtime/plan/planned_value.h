// Values made from a planned format, which stand in before the run has made any: empty ones, and those of a capture.
#pragma once

#include "millrace/abi.h"

namespace millrace::plan {

struct Output;

// A value of the output's format with a first extent of 0 (semantics.md 8.5); a picture is 0 × 0.
mr_value empty_value(const Output& output);
// The value that stands for an input while a body is captured, before the first tick.
mr_value planned_value(const Output& output);

} // namespace millrace::plan
