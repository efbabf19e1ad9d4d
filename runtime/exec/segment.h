// A segment's progress (segment.cpp).
#pragma once

#include <cstdint>

namespace millrace::exec {

struct SegmentRun;

// Runs a claimed segment until it waits or has done `ticks_max` ticks. True if something moved.
bool advance(SegmentRun& segment, uint32_t ticks_max);

} // namespace millrace::exec
