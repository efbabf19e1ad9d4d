// The second cut; see second_cut.h.
#include "exec/second_cut.h"

#include <algorithm>
#include <set>

#include "exec/body.h"
#include "exec/build.h"
#include "exec/channel.h"
#include "exec/copy_step.h"
#include "exec/firing.h"
#include "exec/pending.h"
#include "exec/reach.h"
#include "exec/run_state.h"
#include "exec/threads.h"
#include "observe/histogram.h"

namespace millrace::exec {

namespace {

// Calls of each handler that are waited for: enough for a median that one cold call does not decide.
constexpr uint64_t kCallsWanted = 8;
// Ticks after which those that were called less often do not hold it up any more.
constexpr uint64_t kTicksMax = 64;
// Held clocks may wait for each other (a full queue between two): where nothing has moved for so long they go on, and
// it is tried again a little later, so many times.
constexpr int64_t kStuckNs = 20'000'000;
constexpr int kAttemptsMax = 5;
// A call that is under way is waited for no longer than this, once.
constexpr int64_t kHoldMaxNs = 1'000'000'000;

bool has_measured_enough(const RunState& run) {
  for (const auto& pace : run.paces)
    if (pace->admitted.load(std::memory_order_relaxed) >= kTicksMax) return true;
  for (const HandlerRun* step : run.handlers) {
    const bool guessed = step->segment->plan->lane == 0 && !step->on.device && step->handler->cost_ns == 0;
    if (guessed && step->calls < kCallsWanted) return false;
  }
  return true;
}

// By handler; the first of its lanes speaks for the others. In virtual time a call may take none at all: that is known.
std::vector<int64_t> measured_costs(const RunState& run) {
  std::vector<int64_t> costs(run.plan.handlers.size(), 0);
  for (const HandlerRun* step : run.handlers) {
    if (step->segment->plan->lane > 0) continue;
    Histogram times;
    times.merge(step->times);
    if (times.count() > 0 || (run.is_virtual && step->calls > 0))
      costs[step->plan->handler()] = std::max<int64_t>(1, times.quantile_ns(0.5));
  }
  return costs;
}

std::set<std::vector<uint32_t>> steps_of(const std::vector<plan::Segment>& segments) {
  std::set<std::vector<uint32_t>> steps;
  for (const plan::Segment& segment : segments) steps.insert(segment.steps);
  return steps;
}

bool ending(const RunState& run) {
  if (run.stopping.load() || run.failing.load() || run.abort.load()) return true;
  return std::any_of(run.paces.begin(), run.paces.end(),
                     [](const auto& pace) { return pace->ending.load() || pace->ended.load(); });
}

// Whether nothing is under way in any segment that may change.
bool is_quiet(const RunState& run) {
  for (const auto& pace : run.paces) {
    if (!pace->feed) continue;
    const std::lock_guard lock(pace->feed->mutex);
    if (pace->feed->count > 0) return false;
  }
  return std::all_of(run.segments.begin(), run.segments.end(), [&](const auto& segment) {
    if (!plan::moves(run.plan, *segment->plan)) return true;
    return !segment->in_tick.load(std::memory_order_acquire) &&
           segment->progress.load(std::memory_order_acquire) == segment->pace->admitted.load(std::memory_order_acquire);
  });
}

// Steps go to the segments of the new cut. A segment whose first step begins one again stays the same object, which
// keeps a source with the head that a reader's thread knows.
void move_steps(RunState& run, plan::Cut cut) {
  const std::lock_guard lock(run.cut_mutex);
  run.second_cut = std::make_unique<const plan::Cut>(std::move(cut));
  std::vector<StepRun*> loose(run.plan.steps.size());
  std::vector<SegmentRun*> begun_by(run.plan.steps.size(), nullptr);
  for (auto& segment : run.segments) {
    if (!plan::moves(run.plan, *segment->plan)) continue;
    begun_by[segment->steps[0]->index] = segment.get();
    for (StepRun* step : segment->steps) loose[step->index] = step;
    segment->steps.clear();
  }
  uint32_t left = run.segments_left.load();
  for (const plan::Segment& planned : run.second_cut->segments) {
    if (!loose[planned.steps[0]]) { // one that stays
      for (auto& segment : run.segments)
        if (segment->plan->lane == planned.lane && segment->plan->steps == planned.steps) segment->plan = &planned;
      continue;
    }
    SegmentRun*& segment = begun_by[planned.steps[0]];
    if (!segment) {
      run.segments.push_back(make_segment(run, planned, run.paces[planned.pace]->admitted.load()));
      segment = run.segments.back().get();
      ++left;
    }
    segment->plan = &planned;
    segment->changes_seen = 0; // it vouches for steps that have left
    for (uint32_t s : planned.steps) {
      if (loose[s]->segment != segment) loose[s]->segment = segment;
      segment->steps.push_back(loose[s]);
    }
  }
  for (auto& segment : run.segments) {
    if (!segment->steps.empty() || segment->done.load()) continue;
    segment->progress.store(UINT64_MAX);
    segment->done.store(true);
    --left;
  }
  run.segments_left.store(left);
  join_segments(run);
  want_stamps(run);
  for (HandlerRun* step : run.handlers)
    if (step->short_calls && step->plan->is<plan::HandlerStep>()) flatten(*step);
  for (uint32_t p = 0; p < run.paces.size(); ++p) run.paces[p]->window = run.second_cut->windows[p];
}

} // namespace

SecondCut::SecondCut(RunState& run, Workers* workers) : run_(run), workers_(workers) {
  if (!run.plan.guessed) state_ = State::over;
}

void SecondCut::end() {
  cut_.reset();
  state_ = State::over;
  run_.holding.store(false);
  run_.bell->ring();
}

void SecondCut::give_up() {
  end();
  if (attempts_ < kAttemptsMax) state_ = State::measuring;
}

void SecondCut::cut_at_rest() {
  if (!is_quiet(run_) || ending(run_)) return;
  move_steps(run_, std::move(*cut_));
  tell_second_cut(run_);
  if (workers_) workers_->share_out();
  end();
}

// Whether what is in flight stands still, in no call.
bool SecondCut::is_stuck() {
  uint64_t moved = 0;
  bool inside = false;
  for (const auto& segment : run_.segments) {
    moved += segment->progress.load(std::memory_order_relaxed);
    inside = inside || segment->inside.load(std::memory_order_relaxed);
  }
  const int64_t now = run_.now_ns();
  if (moved != moved_ || inside) {
    moved_ = moved;
    moved_at_ns_ = now;
  }
  if (now - held_since_ns_ > kHoldMaxNs) attempts_ = kAttemptsMax;
  return now - moved_at_ns_ > kStuckNs || now - held_since_ns_ > kHoldMaxNs;
}

void SecondCut::look() {
  if (state_ == State::over) return;
  if (ending(run_)) return end();
  if (state_ == State::measuring) {
    if (!has_measured_enough(run_)) return;
    cut_ = plan::cut_again(run_.plan, measured_costs(run_));
    if (steps_of(cut_->segments) == steps_of(run_.plan.segments)) return end();
    held_since_ns_ = moved_at_ns_ = run_.now_ns();
    ++attempts_;
    state_ = State::holding;
    run_.holding.store(true);
  }
  if (!is_quiet(run_)) {
    if (is_stuck()) give_up();
    return;
  }
  if (!workers_) return cut_at_rest();
  if (workers_->rest()) cut_at_rest();
  workers_->go_on();
}

} // namespace millrace::exec
