// One layout of a plan, whether it fits or not. Private to runtime/plan; lay_out() of draft.h makes those that it
// needs.
#pragma once

#include "plan/draft.h"

namespace millrace::plan {

// Windows, slots, rings and bytes with the ticks in flight that the plan's clocks have. `roomy`: with room for windows
// to grow when the cut is made again.
void lay_out_once(Draft& draft, bool roomy);

} // namespace millrace::plan
