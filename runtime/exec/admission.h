// The head of a pace: when a tick begins and when a clock ends (admission.cpp).
#pragma once

namespace millrace::exec {

struct PaceRun;

// True if a new ordinal was admitted. The caller notifies those that may wait for it.
bool try_admit(PaceRun& pace);

} // namespace millrace::exec
