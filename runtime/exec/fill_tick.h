// Decides when a clock's next tick is and takes its sources' values (semantics.md 1.2 to 1.5). A tick comes at a beat,
// when a live source has a value, or as soon as the window has room. For the head of the pace.
#pragma once

#include <cstdint>

#include "exec/source.h"

namespace millrace::exec {

// Fills the tick's times and the values of its sources. False if there is no tick yet; PaceRun::due_ns then says when
// to look again. Also true if a source's end came instead of values; sources_ended() tells.
bool fill_tick(PaceRun& pace, mr_tick_info& info, uint64_t ordinal);
// True if the source that drives the clock has ended and no value of it is left, or if that is so for all sources.
bool sources_ended(const PaceRun& pace);
// The source that creates the ticks of a live clock, if it has a rate of its own or a reader thread; else null.
SourceState* live_driver(PaceRun& pace);
// A live clock's source has begun, or has given a value: notes until when it has to give the next one.
void await_value(PaceRun& pace);
// Makes the next beat one that is not over: those before it are neither ticks nor late, since the stream was down.
void skip_beats(PaceRun& pace);
// The media time at which the clock would tick next, if its sources say nothing.
int64_t next_media_ns(const PaceRun& pace);
// `realtime`: sets when the head looks again, for the next beat. A clock that is led may end between its beats, so its
// head looks all the time.
void expect_beat(PaceRun& pace);

} // namespace millrace::exec
