// The head of a pace: when a tick begins and when a clock ends (admission.cpp).
#pragma once

namespace millrace::exec {

struct PaceRun;

// True if a new ordinal was admitted. The caller notifies those that may wait for it.
bool try_admit(PaceRun& pace);
// Admits no more ticks, and ends the pace once the readers of its sources have left their handlers.
void end_pace(PaceRun& pace);

} // namespace millrace::exec
