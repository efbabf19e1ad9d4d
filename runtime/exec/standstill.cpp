// Brings a run to a standstill, and lets it go on; see standstill.h.
#include "exec/standstill.h"

#include <algorithm>

#include "exec/channel.h"
#include "exec/group_waits.h"
#include "exec/handler_run.h"
#include "exec/run_state.h"
#include "exec/threads.h"
#include "exec/under_way.h"
#include "exec/window.h"
#include "plan/domain.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

namespace {

// If no call is under way and nothing has moved for this long, unfinished ticks are assumed to be waiting. A wrong
// guess does no harm: the second cut looks where steps stand only once the workers rest.
constexpr int64_t kStillNs = 20'000'000;

// True if every tick that was admitted is through: nothing can move before a clock admits another one.
bool is_empty(const RunState& run) {
  const PlanRun& planned = run.planned;
  const bool waiting = std::any_of(planned.paces.begin(), planned.paces.end(), [](const auto& pace) {
    if (!pace->feed) return false;
    const std::lock_guard lock(pace->feed->mutex);
    return pace->feed->count > 0;
  });
  return !waiting && std::all_of(planned.segments.begin(), planned.segments.end(), [](const auto& segment) {
    return segment->done.load() || (!segment->in_tick.load(std::memory_order_acquire) &&
                                    segment->progress.load(std::memory_order_acquire) >=
                                        segment->pace->admitted.load(std::memory_order_acquire));
  });
}

// The handler of this segment that is in a call; in virtual time, one whose call is not over yet. Null if there is
// none.
const HandlerRun* call_under_way(const RunState& run, const SegmentRun& segment) {
  if (const HandlerRun* inside = segment.inside.load(std::memory_order_relaxed); inside && !run.is_virtual)
    return inside;
  return segment.busy_until_ns > run.now_ns() ? segment.steps[segment.cursor]->called() : nullptr;
}

} // namespace

void Standstill::begin() {
  begun_ = true;
  begun_at_ns_ = moved_at_ns_ = run_.now_ns();
  run_.holding.store(true);
}

void Standstill::go_on() {
  begun_ = false;
  run_.holding.store(false);
  run_.notify_all();
  if (workers_) workers_->go_on();
}

bool Standstill::has_settled(bool nothing_comes) {
  if (nothing_comes || is_empty(run_)) return true;
  uint64_t moved = 0;
  bool busy = false;
  for (const auto& segment : run_.planned.segments) {
    moved += segment->progress.load(std::memory_order_relaxed);
    busy = busy || call_under_way(run_, *segment) || waits_for_device(*segment);
  }
  const int64_t now = run_.now_ns();
  if (moved != moved_ || busy) moved_at_ns_ = now;
  moved_ = moved;
  return now - moved_at_ns_ > kStillNs;
}

bool Standstill::is_at_rest(bool nothing_comes) {
  if (!has_settled(nothing_comes)) return false;
  if (!workers_ || workers_->rest()) return true;
  workers_->go_on(); // a worker is in a call after all
  return false;
}

int64_t Standstill::waited_ns() const { return run_.now_ns() - begun_at_ns_; }

std::string Standstill::waits_for() const {
  for (const auto& segment : run_.planned.segments) {
    if (const HandlerRun* call = call_under_way(run_, *segment))
      return name_with_stream(*call) + " is in " + function_of(*call) + " (tick " +
             std::to_string(segment->pace->tick_at(segment->progress.load())) + ")";
    if (waits_for_device(*segment))
      return name_with_stream(*segment->steps[0]) + " waits for " +
             run_.planned.plan.domains[segment->plan->domain].name;
  }
  const std::vector<std::string> waiting = waiting_lines(run_);
  return waiting.empty() ? "the workers" : waiting[0];
}

} // namespace millrace::exec
