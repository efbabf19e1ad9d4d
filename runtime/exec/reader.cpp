// Reads ahead from a blocking source; see reader.h.
#include "exec/reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "exec/firing.h"
#include "exec/presence.h"
#include "exec/run_options.h"
#include "exec/stream_life.h"
#include "exec/under_way.h"
#include "observe/signal_stack.h"
#include "observe/start_thread.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"
#include "plan/time_rounding.h"

namespace millrace::exec {

namespace {

// A source that has nothing yet, or a handler that has not left its call, is asked again after this long.
constexpr std::chrono::milliseconds kAskAgain{1};

} // namespace

Reader::Reader(SourceRun& step, bool reads)
    : step_(step),
      due_times_(rate_of(step), plan::rounding_ns(step.handler->facts)),
      rate_(due_times_.rate()),
      live_(step.handler->facts.live != 0),
      ended_(!reads),
      left_(!reads) {
  if (reads) begin();
}

void Reader::begin() {
  thread_ = start_thread("the thread that reads " + step_.plan->name, [this] { loop(); });
}

Reader::~Reader() { stop(); }

bool Reader::leave() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (left_) return true;
  }
  changed_.notify_all();
  step_.instance->interrupt();
  return false;
}

void Reader::join() {
  if (thread_.joinable()) thread_.join();
  for (Read& read : values_) release_all(read.slots);
  values_.clear();
}

void Reader::begin_anew(const DueTimes& times) {
  join();
  due_times_ = times;
  rate_ = times.rate();
  step_.said_end = false;
  info_ = {};
  ended_ = stopping_ = left_ = false;
  until_ns_ = INT64_MIN;
  kept_after_ns_ = INT64_MAX;
  started_ = Started::not_yet;
  begin();
}

Started Reader::started() {
  const std::lock_guard lock(mutex_);
  return started_;
}

void Reader::stop() {
  if (!thread_.joinable()) return;
  while (!leave()) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kAskAgain, [&] { return left_; });
  }
  join();
}

Answer Reader::take(std::vector<Slot>& slots, int64_t* due_ns) {
  const std::lock_guard lock(mutex_);
  if (values_.empty()) return ended_ ? Answer::end : Answer::not_yet;
  if (due_ns) *due_ns = values_.front().due_ns;
  slots = std::move(values_.front().slots);
  values_.pop_front();
  changed_.notify_all();
  return Answer::value;
}

bool Reader::has_due(int64_t media_ns) {
  const std::lock_guard lock(mutex_);
  return !values_.empty() && (live_ || rate_.numerator == 0 || values_.front().due_ns <= media_ns);
}

uint64_t Reader::superseded_by(int64_t until_ns, int64_t kept_after_ns) {
  const std::lock_guard lock(mutex_);
  until_ns_ = until_ns;
  kept_after_ns_ = kept_after_ns;
  changed_.notify_all();
  return std::exchange(superseded_, 0);
}

uint64_t Reader::drop_all() {
  const std::lock_guard lock(mutex_);
  const uint64_t dropped = values_.size();
  for (Read& read : values_) release_all(read.slots);
  values_.clear();
  changed_.notify_all();
  return dropped;
}

bool Reader::at_end() {
  const std::lock_guard lock(mutex_);
  return ended_ && values_.empty();
}

// Called under the lock. Makes room by dropping values that will not be asked for any more.
bool Reader::has_room() {
  while (rate_.numerator > 0 && values_.size() >= 2 && values_[1].due_ns <= until_ns_ &&
         values_[0].due_ns <= kept_after_ns_) {
    release_all(values_.front().slots);
    values_.pop_front();
    ++superseded_;
  }
  return live_ || values_.size() < plan::kReadAhead;
}

// Called under the lock.
void Reader::add(Read read) {
  const int64_t pts = later_by(pts_of(read.slots, info_.media_time_ns), base_ns_);
  // If the clock takes each value in turn, its head looks at their times.
  const bool due_counts = rate_.numerator > 0 && step_.pace->clock->plan->realtime();
  read.due_ns = due_counts ? due_of(step_, due_times_, pts) : pts;
  if (values_.size() == plan::kReadAhead) { // live: the newest counts
    release_all(values_.front().slots);
    values_.pop_front();
    ++superseded_;
  }
  values_.push_back(std::move(read));
}

// Called without the lock. True if the source is there to be read.
bool Reader::start_source() {
  if (started() == Started::yes) return true; // the run has started it
  const bool is_up = start_anew(step_);
  const std::lock_guard lock(mutex_);
  started_ = is_up ? Started::yes : Started::failed;
  base_ns_ = std::max<int64_t>(step_.run->now_ns() - step_.run->begin_ns(), 0);
  return is_up;
}

void Reader::loop() {
  RunState& run = *step_.run;
  const ClockRun& clock = *step_.pace->clock;
  const SignalStack stack(run.options.explain_crashes);
  const plugin::UnderWayScope here({&name_call_outside, &step_});
  const bool is_up = start_source();
  run.wake_head(*step_.pace);
  std::unique_lock lock(mutex_);
  while (is_up) {
    changed_.wait(lock, [&] { return stopping_ || has_room(); });
    // A stream that begins anew is halted until its source is there.
    const bool over = run.failing.load() || (clock.halted.load() && !clock.plan->comes_again());
    if (stopping_ || step_.said_end || run.stopping.load() || over) break;
    lock.unlock();
    info_.media_time_ns = rate_.numerator > 0 ? beat_ns(rate_, static_cast<int64_t>(info_.index))
                          : live_             ? std::max<int64_t>(run.now_ns() - run.begin_ns(), 0)
                                  : beat_ns(nominal_rate(*step_.pace->clock->plan), static_cast<int64_t>(info_.index));
    step_.context.ordinal = info_.index;
    info_.trace_id = info_.index;
    // Its calls belong to no tick, so the changes of all ticks so far apply.
    if (run.changes_admitted.load(std::memory_order_acquire) != step_.life->changes_seen)
      apply_changes(step_, UINT64_MAX - 1);
    step_.tick_outside.store(info_.index, std::memory_order_relaxed);
    const mr_status status = call(step_, info_);
    step_.tick_outside.store(HandlerRun::kNoCall, std::memory_order_relaxed);
    Read read;
    read.slots.resize(step_.outputs.size());
    const Answer answer = status == MR_INTERRUPTED ? Answer::end : answer_of(step_, status, read.slots);
    const bool nothing = answer == Answer::not_yet || step_.life->down;
    lock.lock();
    if (answer == Answer::end) break;
    if (status == MR_ERROR && is_failing(run, clock)) {
      started_ = Started::failed; // also of a stream that was about to begin anew
      break;
    }
    if (nothing) {
      changed_.wait_for(lock, kAskAgain, [&] { return stopping_; });
      continue;
    }
    add(std::move(read));
    ++info_.index;
    lock.unlock();
    if (clock.plan->mode != graph::ClockMode::realtime) run.wake_head(*step_.pace); // else it looks at its beats
    lock.lock();
  }
  ended_ = left_ = true;
  changed_.notify_all();
  lock.unlock();
  run.wake_head(*step_.pace);
}

} // namespace millrace::exec
