// Asks sources for their values (semantics.md 1.4). The functions are for the head of the source's pace; a reader's
// thread also calls those that it needs (reader.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/due_times.h"
#include "exec/handler_run.h"

namespace millrace::plan {
struct Clock;
}

namespace millrace::exec {

class Reader;

// A source as the head sees it: its value for the tick, and the next one, which is not due yet.
struct SourceState {
  // head; `step` built
  SourceRun* step = nullptr;
  bool ended = false;
  bool has_value = false; // for the tick that is being admitted
  bool has_next = false;  // read ahead
  std::vector<Slot> value, next;
  graph::Rational rate; // its own; numerator 0: none
  DueTimes due_times;
  bool follows = false;       // it gives what it has by then, and no tick waits for it
  bool by_time = false;       // plan::Clock::takes_what_is_due
  bool each_has_beat = false; // has_beat_for_each: none of its values need be passed over
  uint64_t index = 0;         // values it has given; a source with a rate is told this as its tick's index
  int64_t value_due_ns = INT64_MIN, next_due_ns = INT64_MIN;
  int64_t due_before = 0; // values that its rate had due at the last beat
  SingleWriter<uint64_t> passed_over;
  std::shared_ptr<Reader> reader; // start: a blocking source is read by a thread of its own

  // For a stream that has begun anew: when it did, in media time. Its values are counted and timed from there.
  int64_t base_ns = 0;
  bool starts = false;     // it is being started
  bool marks_next = false; // its next value is the first one of an epoch
  void begin_anew(int64_t media_ns);
  // It has told these facts, and belongs to this clock.
  void take_facts(const mr_facts& facts, const plan::Clock& clock);
};

// The choice among several values that are due at a beat: the newest, except that a value that was due after
// `kept_after_ns` comes first. Media times.
struct BeatChoice {
  int64_t until_ns = 0; // the next beat
  int64_t kept_after_ns = INT64_MAX;
  int64_t next_kept_after_ns = INT64_MAX; // kept_after_ns of the next beat
};
// A value waits for the one before it by one beat at most.
BeatChoice choice_at(const graph::Rational& rate, int64_t beat);

// How far a source is that is started anew.
enum class Started { yes, not_yet, failed };

// The answer of a source that is asked for its next value.
enum class Answer { value, not_yet, end };

// A source that said "not yet" is asked again after this long, unless something else moves first.
inline constexpr int64_t kAskAgainNs = 1'000'000;

// The sum of two times. Saturates.
inline int64_t later_by(int64_t time_ns, int64_t ns) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(time_ns, ns, &sum)) return sum;
  return ns > 0 ? INT64_MAX : INT64_MIN;
}

// When a beat of this rate is due; beat 0 is due at 0. Saturates.
int64_t beat_ns(const graph::Rational& rate, int64_t beat);

graph::Rational nominal_rate(const plan::Clock& clock);

// The source's own rate; numerator 0: none.
graph::Rational rate_of(const mr_facts& facts);
graph::Rational rate_of(const SourceRun& source);

// Makes a source's slots empty, with this cause.
void clear(std::vector<Slot>& slots, Cause cause);
void release_all(std::vector<Slot>& slots);

// Makes the value that was read ahead the tick's value. A value that the tick had before is passed over.
void take_next(SourceState& source);

// Moves the values that a call of the source left in raw_outputs into `slots`. Blocks that it allocated and then did
// not give go back.
Answer answer_of(SourceRun& source, mr_status status, std::vector<Slot>& slots);

int64_t pts_of(const std::vector<Slot>& slots, int64_t otherwise);

// Counts a media time that does not rise, and tells of the first one (8.9).
void record_replaced(SourceRun& source);
// When the next value is due, whose time is `pts_ns`. A time that does not rise is counted and told of.
int64_t due_of(SourceRun& source, DueTimes& times, int64_t pts_ns);

// Takes one value: by a call of a source that does not block, or from the source's reader. `info` is the tick's; a
// source with a rate is told its own count of values and the time of that count instead.
Answer ask(SourceState& source, const mr_tick_info& info, uint64_t ordinal, std::vector<Slot>& slots);

// Under `realtime`, and for the other sources of a live clock: takes the value that the choice says of those that are
// due and not yet given, else leaves the tick empty.
void ask_at_beat(SourceState& source, const mr_tick_info& info, uint64_t ordinal, const BeatChoice& choice);

} // namespace millrace::exec
