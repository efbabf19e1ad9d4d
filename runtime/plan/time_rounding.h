// The rounding error of a source's times, and of the clock that it paces: containers store times in coarse units.
#pragma once

#include <cstdint>

#include "millrace/abi.h"

namespace millrace::plan {

struct Draft;

// The most nanoseconds by which the time of a value may differ from the exact one, counted from the source's first
// value. 1 if its times are exact: then only the conversion to whole nanoseconds is left. That is so where the source
// tells no unit of its times, and where its period is a multiple of the unit. Else both times that are subtracted may
// be off by half a unit, or by almost a whole one if the container cuts them.
int64_t rounding_ns(const mr_facts& facts);

// Sets Clock::rounding_ns of all clocks. Needs their circles.
void find_rounding(Draft& draft);

} // namespace millrace::plan
