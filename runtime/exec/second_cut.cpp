// Measures the first ticks and cuts the segments once more; see second_cut.h.
#include "exec/second_cut.h"

#include <algorithm>
#include <set>
#include <utility>

#include "exec/body.h"
#include "exec/build.h"
#include "exec/channel.h"
#include "exec/copy_step.h"
#include "exec/firing.h"
#include "exec/pending.h"
#include "exec/run_state.h"
#include "exec/sink_latency.h"
#include "exec/stream_epochs.h"
#include "exec/threads.h"
#include "observe/histogram.h"
#include "plan/pace.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// The calls of each handler to wait for: enough for a median that one cold call does not decide.
constexpr uint64_t kCallsWanted = 8;
// After this many ticks, handlers that were called less often are not waited for any more.
constexpr uint64_t kTicksMax = 64;
// A call that is under way is waited for no longer than kHoldMaxNs. Then the clocks go on and the cut is tried again a
// little later, at most kAttemptsMax times in all.
constexpr int64_t kHoldMaxNs = 1'000'000'000;
constexpr int kAttemptsMax = 5;

// True if the pace admits no more ticks for now: the ticks that it has begun end in the segments that it has.
bool is_ending(const PaceRun& pace) {
  const PaceRun& root = root_of(pace);
  const bool ends_epoch = root.epochs_over.load() != root.epoch.load();
  return pace.ending.load() || pace.ended.load() || pace.clock->halted.load() || ends_epoch;
}

bool has_measured_enough(const RunState& run) {
  for (const auto& pace : run.planned.paces)
    if (pace->admitted.load(std::memory_order_relaxed) >= kTicksMax) return true;
  for (const HandlerRun* step : run.planned.handlers) {
    if (is_ending(*step->pace)) continue;
    const bool guessed = step->segment->plan->lane == 0 && !step->on.device && step->handler->cost_ns == 0;
    if (guessed && step->life->calls() < kCallsWanted) return false;
  }
  return true;
}

// The measured costs by handler; the first lane speaks for the others. In virtual time a call may take no time at all,
// and that counts as measured.
std::vector<int64_t> measured_costs(const RunState& run) {
  std::vector<int64_t> costs(run.planned.plan.handlers.size(), 0);
  for (const HandlerRun* step : run.planned.handlers) {
    if (step->segment->plan->lane > 0) continue;
    Histogram times;
    times.merge(step->times);
    if (times.count() > 0 || (run.is_virtual && step->life->calls() > 0))
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
  return std::all_of(run.planned.paces.begin(), run.planned.paces.end(),
                     [](const auto& pace) { return is_ending(*pace); });
}

// By segment of the plan: true if it stays as it is, whatever its steps cost.
std::vector<bool> segments_that_stay(const RunState& run) {
  const PlanRun& planned = run.planned;
  std::vector<bool> stays;
  for (const plan::Segment& segment : planned.plan.segments)
    stays.push_back(!plan::moves(planned.plan, segment) || is_ending(*planned.paces[segment.pace]));
  return stays;
}

// The first ordinal that a step at rest is not through.
uint64_t next_of(const SegmentRun& segment, size_t position) {
  const bool is_through = segment.in_tick.load() && position < segment.cursor;
  return segment.ordinal + (is_through ? 1 : 0);
}

// A step of a segment that another cut may change, and the ordinal at which it stands.
struct Loose {
  StepRun* step = nullptr; // null: it stays where it is
  uint64_t next = 0;
  uint32_t segment = plan::kNone; // its segment now, index into Plan::segments
};

std::vector<Loose> loose_steps(const RunState& run, const std::vector<bool>& stays) {
  const PlanRun& planned = run.planned;
  std::vector<Loose> loose(planned.plan.steps.size());
  for (const auto& segment : planned.segments) {
    const auto number = static_cast<uint32_t>(segment->plan - planned.plan.segments.data());
    if (stays[number]) continue;
    for (size_t i = 0; i < segment->steps.size(); ++i)
      loose[segment->steps[i]->index] = {segment->steps[i], next_of(*segment, i), number};
  }
  return loose;
}

// The number of steps at the front of a new segment that are through the tick at which its last step stands. Nothing if
// the segment could not go on from there: a step stands at another tick, or is through that one while a step before it
// is not.
std::optional<size_t> through_of(const std::vector<Loose>& loose, const plan::Segment& planned) {
  const uint64_t ordinal = loose[planned.steps.back()].next;
  size_t through = 0;
  while (through < planned.steps.size() && loose[planned.steps[through]].next == ordinal + 1) ++through;
  for (size_t i = through; i < planned.steps.size(); ++i)
    if (loose[planned.steps[i]].next != ordinal) return std::nullopt;
  return through;
}

// Cuts by these costs all segments whose steps stand so that they can be cut. The others keep their steps, and are
// marked in `stays`.
plan::Cut possible_cut(const RunState& run, const std::vector<int64_t>& costs_ns, std::vector<bool>& stays) {
  for (;;) {
    plan::Cut cut = plan::cut_again(run.planned.plan, costs_ns, stays);
    const std::vector<Loose> loose = loose_steps(run, stays);
    bool possible = true;
    for (const plan::Segment& planned : cut.segments) {
      if (!loose[planned.steps[0]].step || through_of(loose, planned)) continue;
      possible = false;
      for (const uint32_t s : planned.steps) stays[loose[s].segment] = true;
    }
    if (possible) return cut;
  }
}

// Stops measuring the ticks in flight: a measured tick counts the segments that end it, and the cut changes their
// number.
void measure_none(RunState& run) {
  for (auto& pace : run.planned.paces)
    for (uint64_t place = 0; place <= pace->mask; ++place)
      pace->latency[place].ordinal.store(UINT64_MAX, std::memory_order_relaxed);
  for (auto& segment : run.planned.segments) segment->measured = false;
}

// Gives the segment these steps; it goes on from where they stand.
void give_steps(SegmentRun& segment, const plan::Segment& planned, const std::vector<Loose>& loose) {
  const size_t through = *through_of(loose, planned);
  segment.plan = &planned;
  segment.ordinal = loose[planned.steps.back()].next;
  segment.cursor = through;
  segment.in_tick.store(through > 0);
  segment.progress.store(segment.ordinal);
  segment.changes_seen = 0; // its value was for steps that have left
  segment.careful.store(true);
  segment.awaits.store(nullptr);
  segment.waiting_at.store(nullptr);
  for (const uint32_t s : planned.steps) {
    StepRun& step = *loose[s].step;
    if (step.segment != &segment) step.segment = &segment;
    segment.steps.push_back(&step);
  }
}

// Moves the steps to the segments of the new cut. A segment whose first step also begins a segment of the new cut stays
// the same object. So a source stays with the head that the thread of its reader knows.
void move_steps(RunState& run, plan::Cut cut, const std::vector<Loose>& loose) {
  PlanRun& planned = run.planned;
  const std::lock_guard lock(planned.cut_mutex);
  planned.second_cut = std::make_unique<const plan::Cut>(std::move(cut));
  std::vector<SegmentRun*> begun_by(planned.plan.steps.size(), nullptr);
  for (auto& segment : planned.segments) {
    if (!loose[segment->steps[0]->index].step) continue;
    begun_by[segment->steps[0]->index] = segment.get();
    segment->steps.clear();
  }
  uint32_t left = planned.segments_left.load();
  for (const plan::Segment& wanted : planned.second_cut->segments) {
    if (!loose[wanted.steps[0]].step) { // one that stays
      for (auto& segment : planned.segments)
        if (segment->plan->lane == wanted.lane && segment->plan->steps == wanted.steps) segment->plan = &wanted;
      continue;
    }
    SegmentRun*& segment = begun_by[wanted.steps[0]];
    if (!segment) {
      planned.segments.push_back(make_segment(run, wanted, 0));
      segment = planned.segments.back().get();
      ++left;
    }
    give_steps(*segment, wanted, loose);
  }
  for (auto& segment : planned.segments) {
    if (!segment->steps.empty() || segment->done.load()) continue;
    segment->progress.store(UINT64_MAX);
    segment->done.store(true);
    --left;
  }
  planned.segments_left.store(left);
  measure_none(run);
  join_segments(run);
  want_stamps(run);
  for (HandlerRun* step : planned.handlers)
    if (step->short_calls && step->plan->is<plan::HandlerStep>()) flatten(*step);
  for (uint32_t p = 0; p < planned.paces.size(); ++p) planned.paces[p]->window = planned.second_cut->windows[p];
}

} // namespace

SecondCut::SecondCut(RunState& run, Workers* workers) : run_(run), workers_(workers), standstill_(run, workers) {
  if (!run.planned.plan.guessed) state_ = State::over;
}

void SecondCut::end(State state) {
  state_ = state;
  if (standstill_.has_begun()) standstill_.go_on();
}

void SecondCut::cut_at_rest() {
  std::vector<bool> stays = segments_that_stay(run_);
  plan::Cut cut = possible_cut(run_, costs_ns_, stays);
  if (steps_of(cut.segments) == steps_of(run_.planned.plan.segments)) return;
  move_steps(run_, std::move(cut), loose_steps(run_, stays));
  log_second_cut(run_);
  if (workers_) workers_->share_out();
}

void SecondCut::begin() {
  costs_ns_ = measured_costs(run_);
  const plan::Cut cut = plan::cut_again(run_.planned.plan, costs_ns_, segments_that_stay(run_));
  if (steps_of(cut.segments) == steps_of(run_.planned.plan.segments)) return end(State::over);
  ++attempts_;
  state_ = State::standing_still;
  standstill_.begin();
}

void SecondCut::look(bool nothing_comes) {
  if (state_ == State::over) return;
  if (ending(run_)) return end(State::over);
  if (state_ == State::measuring) {
    if (!has_measured_enough(run_)) return;
    begin();
    if (state_ == State::over) return;
  }
  if (standstill_.is_at_rest(nothing_comes)) {
    if (!ending(run_)) cut_at_rest();
    return end(State::over);
  }
  if (standstill_.waited_ns() <= kHoldMaxNs) return;
  log_not_cut(run_, standstill_.waits_for());
  end(attempts_ < kAttemptsMax ? State::measuring : State::over);
}

} // namespace millrace::exec
