// Makes one layout of a plan, which may not fit. Private to runtime/plan; lay_out() of draft.h calls it until one fits.
#pragma once

#include "plan/draft.h"

namespace millrace::plan {

// Lays out windows, slots, rings and bytes for the ticks in flight that the plan's clocks have. `roomy`: with room for
// windows to grow when the cut is made again.
void lay_out_once(Draft& draft, bool roomy);

} // namespace millrace::plan
