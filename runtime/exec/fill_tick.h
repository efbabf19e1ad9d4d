// When a clock's next tick is, and what its sources give for it (semantics.md 1.2 to 1.5): at a beat, when a live
// source has something, or as soon as the window has room. For the head of the pace.
#pragma once

#include <cstdint>

#include "exec/source.h"

namespace millrace::exec {

// Fills the tick's times, and the values of its sources. False where there is no tick yet; then PaceRun::due_ns says
// when to look again. True too where a source's end came instead of values: sources_ended().
bool fill_tick(PaceRun& pace, mr_tick_info& info, uint64_t ordinal);
// Whether all that could still give a value has ended.
bool sources_ended(const PaceRun& pace);
// The source that creates the ticks of a live clock, where it has a beat of its own or a thread that reads it.
SourceState* live_driver(PaceRun& pace);

} // namespace millrace::exec
