// What a source is asked, and what it answers (semantics.md 1.4). All by the head of its pace, but for answer_of().
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/handler_run.h"

namespace millrace::exec {

class Reader;

// A source's value that is not due yet, and the one that is.
struct SourceState {
  // head; `step` built
  SourceRun* step = nullptr;
  bool ended = false;
  bool has_value = false; // for the tick that is being admitted
  bool has_next = false;  // read ahead
  std::vector<Slot> value, next;
  graph::Rational rate; // its own; numerator 0: none
  bool by_time = false; // plan::Clock::takes_what_is_due
  uint64_t index = 0;   // values it has given: what it is told as its tick's index where it has a rate
  int64_t next_due_ns = INT64_MIN;
  int64_t due_before = 0; // values that its rate had due at the last beat
  SingleWriter<uint64_t> passed_over;
  std::shared_ptr<Reader> reader; // start: a blocking source is read by a thread of its own
};

// What a source says when it is asked for its next value.
enum class Answer { value, not_yet, end };

// A source that said "not yet" is asked again after this long, unless something else moves first.
inline constexpr int64_t kAskAgainNs = 1'000'000;

// When a beat of this rate is due, from beat 0 on. Saturates.
int64_t beat_ns(const graph::Rational& rate, int64_t beat);

inline graph::Rational nominal_rate(const plan::Clock& clock) {
  return clock.rate.numerator > 0 ? clock.rate : graph::Rational{plan::kNominalRate, 1};
}

// The rate of a source's own; numerator 0: none.
graph::Rational rate_of(const SourceRun& source);

// Why a source's slot is empty, where it says no more.
void clear(std::vector<Slot>& slots, Cause cause);
void release_all(std::vector<Slot>& slots);

// The value that was read ahead becomes the tick's; one that the tick had is passed over.
void take_next(SourceState& source);

// What a call of the source left in raw_outputs goes into `slots`; what it allocated and then did not give goes back.
Answer answer_of(SourceRun& source, mr_status status, std::vector<Slot>& slots);

int64_t pts_of(const std::vector<Slot>& slots, int64_t otherwise);

// A source gave a time that does not rise: counted, and told once (8.9).
void note_replaced(SourceRun& source);
// When a value is due: its own time, but one period after the last where that does not rise. Saturates.
int64_t due_after(SourceRun& source, int64_t last_due_ns, int64_t pts_ns, const graph::Rational& rate);

// One call of a source that does not block, or one value of its reader. `info` is the tick's; a source with a rate is
// told its own count of values, and the time of that.
Answer ask(SourceState& source, const mr_tick_info& info, uint64_t ordinal, std::vector<Slot>& slots);

// Under `realtime`: the newest value that is due and not yet given, else empty. `until_ns` is the next beat.
void ask_at_beat(SourceState& source, const mr_tick_info& info, uint64_t ordinal, int64_t until_ns);

} // namespace millrace::exec
