// Asks sources for values: the next one, or the newest that is due; see source.h.
#include "exec/source.h"

#include <algorithm>

#include "exec/firing.h"
#include "exec/reader.h"
#include "exec/settle.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/time_rounding.h"

namespace millrace::exec {

namespace {

// A file of variable rate crowds its values: at one beat, up to this many more than its rate says may be taken.
constexpr int64_t kCrowdedMax = 64;

// The number of values that a source of this rate has had due by then.
int64_t due_by(const graph::Rational& rate, int64_t media_ns) {
  const double due = static_cast<double>(media_ns) * 1e-9 * static_cast<double>(rate.numerator) /
                     static_cast<double>(rate.denominator);
  return due < 9e18 ? static_cast<int64_t>(due) : INT64_MAX / 2;
}

// Reads one value ahead unless one is there already. False if the source has none.
bool read_ahead(SourceState& source, const mr_tick_info& info, uint64_t ordinal) {
  if (source.has_next) return true;
  if (source.ended) return false;
  const int64_t own_time = beat_ns(source.rate, static_cast<int64_t>(source.index));
  const Answer answer = ask(source, info, ordinal, source.next);
  source.ended = answer == Answer::end;
  if (answer != Answer::value) return false;
  source.has_next = true;
  const int64_t pts = later_by(pts_of(source.next, own_time), source.base_ns);
  source.next_due_ns = due_of(*source.step, source.due_times, pts);
  return true;
}

void take_due(SourceState& source, const mr_tick_info& info, uint64_t ordinal, const BeatChoice& choice) {
  const int64_t due = due_by(source.rate, info.media_time_ns - source.base_ns);
  const int64_t most = std::max<int64_t>(due - source.due_before, 0) + kCrowdedMax;
  source.due_before = due;
  for (int64_t taken = 0; taken < most && read_ahead(source, info, ordinal); ++taken) {
    if (source.next_due_ns > info.media_time_ns) return;
    if (source.has_value && source.value_due_ns > choice.kept_after_ns) return;
    take_next(source);
  }
}

void take_read(SourceState& source, const mr_tick_info& info, const BeatChoice& choice) {
  Reader& reader = *source.reader;
  while (reader.has_due(info.media_time_ns)) {
    if (source.has_value && source.value_due_ns > choice.kept_after_ns) break;
    if (source.has_value) {
      ++source.passed_over;
      release_all(source.value);
    }
    source.has_value = reader.take(source.value, &source.value_due_ns) == Answer::value;
    if (!reader.newest_counts()) break; // without a rate a file gives one value a beat
  }
  source.passed_over += reader.superseded_by(choice.until_ns, choice.next_kept_after_ns);
  source.ended = reader.at_end();
}

} // namespace

int64_t beat_ns(const graph::Rational& rate, int64_t beat) {
  // Whole seconds and the rest are computed apart, so that no product overflows within centuries.
  int64_t periods = 0, whole = 0, rest = 0, at = 0;
  const bool fits = !__builtin_mul_overflow(beat, rate.denominator, &periods) &&
                    !__builtin_mul_overflow(periods / rate.numerator, int64_t{1'000'000'000}, &whole) &&
                    !__builtin_mul_overflow(periods % rate.numerator, int64_t{1'000'000'000}, &rest) &&
                    !__builtin_add_overflow(whole, rest / rate.numerator, &at);
  return fits ? at : INT64_MAX;
}

graph::Rational nominal_rate(const plan::Clock& clock) {
  return clock.rate.numerator > 0 ? clock.rate : graph::Rational{plan::kNominalRate, 1};
}

graph::Rational rate_of(const SourceRun& source) { return rate_of(source.handler->facts); }

graph::Rational rate_of(const mr_facts& facts) {
  return facts.rate_num > 0 ? graph::Rational{facts.rate_num, facts.rate_den} : graph::Rational{};
}

void SourceState::begin_anew(int64_t media_ns) {
  if (!reader) step->said_end = false; // a reader's thread has done so, and reads on
  ended = has_value = has_next = false;
  index = 0;
  due_times.begin_anew();
  value_due_ns = next_due_ns = INT64_MIN;
  due_before = 0;
  base_ns = media_ns;
  marks_next = true;
}

void SourceState::take_facts(const mr_facts& facts, const plan::Clock& clock) {
  follows = step->handler->facts.follows != 0;
  rate = follows ? graph::Rational{0, 1} : rate_of(facts);
  due_times = DueTimes(rate, plan::rounding_ns(facts));
  by_time = clock.takes_what_is_due(facts);
  each_has_beat = has_beat_for_each(clock.rate, rate);
}

BeatChoice choice_at(const graph::Rational& rate, int64_t beat) {
  const auto kept_after = [&](int64_t at) { return at < 2 ? INT64_MIN : beat_ns(rate, at - 2); };
  return {beat_ns(rate, beat + 1), kept_after(beat), kept_after(beat + 1)};
}

void clear(std::vector<Slot>& slots, Cause cause) {
  for (Slot& slot : slots) {
    slot = Slot{};
    slot.cause = cause;
  }
}

void release_all(std::vector<Slot>& slots) {
  for (Slot& slot : slots) release(slot);
}

void take_next(SourceState& source) {
  if (source.has_value) {
    ++source.passed_over;
    release_all(source.value);
  }
  std::swap(source.value, source.next);
  source.value_due_ns = source.next_due_ns;
  source.has_value = true;
  source.has_next = false;
}

Answer answer_of(SourceRun& source, mr_status status, std::vector<Slot>& slots) {
  for (size_t o = 0; o < slots.size(); ++o) {
    const mr_output& output = source.raw_outputs[o];
    slots[o] = output.state == MR_OUTPUT_SILENT ? Slot{} : value_of(output);
    if (!slots[o].value) slots[o].cause = status == MR_ERROR ? Cause::error : Cause::silent;
  }
  const bool gave = std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.value; });
  source.said_end = status == MR_END;
  if (status != MR_NOT_YET && (status != MR_END || gave)) return Answer::value; // the end comes after it
  release_all(slots);
  return status == MR_END ? Answer::end : Answer::not_yet;
}

int64_t pts_of(const std::vector<Slot>& slots, int64_t otherwise) {
  for (const Slot& slot : slots)
    if (slot.value) return slot.value->header.pts_ns;
  return otherwise;
}

void record_replaced(SourceRun& source) {
  if (++source.times_replaced > 1) return;
  source.instance->log(
      MR_LOG_WARNING,
      "a media time does not rise; it is replaced, and so is each that follows (times_replaced counts)");
}

int64_t due_of(SourceRun& source, DueTimes& times, int64_t pts_ns) {
  const DueTimes::Due due = times.next(pts_ns);
  if (due.replaced) record_replaced(source);
  return due.at_ns;
}

Answer ask(SourceState& source, const mr_tick_info& info, uint64_t ordinal, std::vector<Slot>& slots) {
  if (source.reader) return source.reader->take(slots);
  SourceRun& step = *source.step;
  if (step.said_end) return Answer::end; // it was given together with a value
  step.context.ordinal = ordinal;
  mr_tick_info own = info;
  if (source.rate.numerator > 0) {
    own.index = source.index;
    own.media_time_ns = beat_ns(source.rate, static_cast<int64_t>(source.index));
  }
  // By the tick's index, not the source's own.
  if (step.run->changes_admitted.load(std::memory_order_acquire) != step.life->changes_seen)
    apply_changes(step, info.index);
  const Answer answer = answer_of(step, call(step, own), slots);
  if (answer == Answer::value) ++source.index;
  return answer;
}

void ask_at_beat(SourceState& source, const mr_tick_info& info, uint64_t ordinal, const BeatChoice& choice) {
  source.has_value = false;
  clear(source.value, Cause::not_yet);
  if (source.reader) {
    take_read(source, info, choice);
  } else if (source.rate.numerator > 0) {
    take_due(source, info, ordinal, choice);
  } else if (!source.ended) {
    const Answer answer = ask(source, info, ordinal, source.value);
    source.ended = answer == Answer::end;
    source.has_value = answer == Answer::value;
  }
  if (!source.has_value) clear(source.value, source.ended && !source.has_next ? Cause::end : Cause::not_yet);
}

} // namespace millrace::exec
