// Epochs of a stream's clock: which of them has begun where.
//
// At the clock's home its own pace ends an epoch and begins the next one (stream_life.h). Its far paces, there and on
// other nodes, do not wait for that, and it does not wait for them. The first tick of an epoch tells a far pace that
// the one before is over, because each of its feeds keeps the order. The pace then has its segments drain and reset
// their handlers, as those at home have done, before it admits that tick. So paces of one clock may be in several
// epochs at a time, and a failure belongs to the epoch of its tick.
#pragma once

#include <cstdint>

#include "millrace/abi.h"

namespace millrace::exec {

struct ClockRun;
struct PaceRun;
class RunState;

// The pace that begins the epochs of this one: a decoupled pace follows the one before its gate.
const PaceRun& root_of(const PaceRun& pace);
// True if all segments that get their ticks by the pace have ended the epochs that are over for it.
bool have_ended_epoch(const PaceRun& root);
// Called by the head of a far pace before it admits a tick of another epoch. True once the pace is in that epoch.
bool reaches_epoch(PaceRun& pace, const mr_tick_info& info);
// The stream has begun this epoch. Failures of earlier ones are forgotten. Any thread.
void record_epoch(RunState& run, ClockRun& clock, uint32_t epoch);

} // namespace millrace::exec
