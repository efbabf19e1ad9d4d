// Streams that come and go while the run goes on (batch-design B15). A set with `max` has a seat for each stream that
// may be there at a time: a clock, segments and memory. A stream that is removed, ends or fails leaves its seat: its
// clock ends an epoch (stream_life.h), and its handlers are stopped. One that comes brings instances of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/cause.h"
#include "exec/new_stream.h"
#include "observe/histogram.h"

namespace millrace::plan {
struct HandlerPlan;
}

namespace millrace::exec {

class RunState;
struct ClockRun;
struct HandlerRun;
struct PaceRun;

// Why a seat has no stream.
enum class Left : uint8_t { never_there, removed, by_itself };

// The stream of a clock. Clocks outside sets have one too, which nobody asks for.
struct SeatRun {
  // any, under RunState::seats_mutex
  std::string name;          // the stream that is there, or was there last; "": none was
  bool is_there = false;     // or about to be
  bool is_awaited = false;   // its source has not answered yet, and the seat is kept for it
  bool one_was_well = false; // a stream has left it, and had not failed
  std::unique_ptr<NewStream> coming;
  StreamDone leaving;
  // any thread reads them
  std::atomic<bool> asked{false};  // `coming` is set
  std::atomic<bool> vacant{false}; // no stream is there, and nobody waits for it
  std::atomic<Left> left{Left::never_there};
  // Counts of the streams that were there before; under seats_mutex
  uint64_t ticks_before = 0, late_before = 0, skipped_before = 0, restarts_before = 0;
  Drops lost_before{};
  std::optional<Histogram> latencies_before; // none: no stream was there
};

// Takes a free seat of the set for a stream of this name, and returns its clock. Throws Failure: MR0324 if there is no
// free seat, MR0303 if there is a stream of this name, MR0320 for a set that the plan does not have.
uint32_t take_seat(RunState& run, const std::string& set, const std::string& name);
// The stream does not come after all.
void give_up_seat(RunState& run, uint32_t clock);
// True if the seat is still kept for the stream whose source did not answer, and the run goes on.
bool is_awaited(const RunState& run, uint32_t clock);
// It cannot begin yet. A sentence other than the last one is told.
void still_absent(RunState& run, uint32_t clock, const Error& error);
// Lets the stream begin in the seat that was taken for it, or is kept for it.
void come(RunState& run, uint32_t clock, NewStream stream);
// Removes a stream. Throws Failure: MR0321 if there is none of this name, MR0324 if its set has no room for others, or
// if it is being added or removed: whoever adds it is answered first.
void go(RunState& run, const std::string& set, const std::string& name, StreamDone done);

// The plan names seats. A person knows streams, so what is told has the name of the stream that is in the seat, or
// was there last; the plan's, where none was. Each of these takes seats_mutex.
//
// "draw@gate7" for an instance in whose seat the stream gate7 is.
std::string name_now(const RunState& run, const plan::HandlerPlan& handler);
// "gate7"
std::string clock_now(const RunState& run, uint32_t clock);
// The same for the name of a step or an edge of that clock, wherever it stands in the words.
std::string as_now(const RunState& run, uint32_t clock, const std::string& words);

// The run is over: whoever waits for a stream to come or to go is told so, also from now on. Any thread.
void end_seats(RunState& run);
// The same for one seat, whose clock has ended.
void end_seat(ClockRun& clock, RunState& run);

// The handler of a stream that comes could not start.
Error start_error(const HandlerRun& step, const std::string& sentence);

// For the head of the clock:

// The stream is over. Its handlers are stopped, and the seat is free.
void vacate(PaceRun& pace, Left left);
// True if a stream has come into the vacant seat, and its handlers but the sources have started.
bool has_come(PaceRun& pace);
// The stream that came has begun, or could not.
void answer_come(PaceRun& pace, const Error* error);
// A stream of the set is over: heads of free seats look whether it was the last one.
void wake_seats(RunState& run, const std::string& set);
// True if all streams of the set are over, and the last of them by itself: no more are waited for.
bool is_set_over(const PaceRun& pace);

} // namespace millrace::exec
