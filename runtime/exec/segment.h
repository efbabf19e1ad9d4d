// A segment's progress (segment.cpp).
#pragma once

#include <cstdint>

namespace millrace::exec {

struct SegmentRun;

// Runs a claimed segment until it waits or has done `ticks_max` ticks. True if something moved.
bool advance(SegmentRun& segment, uint32_t ticks_max);
// The same for a worker's turn: some hundred ticks, and more if they are short.
bool run_turn(SegmentRun& segment);

} // namespace millrace::exec
