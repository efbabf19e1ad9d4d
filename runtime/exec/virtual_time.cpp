// Carries out a run in virtual time: simulated workers, calls that take what they are said to cost, and a clock that
// jumps from event to event (semantics.md 1.2, 4.10). It is single-threaded, so events have the same order in every
// run.
#include <algorithm>

#include "exec/channel.h"
#include "exec/run_state.h"
#include "exec/segment.h"
#include "exec/threads.h"

namespace millrace::exec {

namespace {

struct SimulatedWorker {
  TraceRing* trace;
  int64_t free_at_ns = 0;
};

// A worker that may carry the segment forward now; null if all are in a call.
SimulatedWorker* worker_for(const SegmentRun& segment, std::vector<SimulatedWorker>& workers, const plan::Plan& plan,
                            int64_t now) {
  if (segment.plan->pinned) {
    SimulatedWorker& home = workers[segment.plan->home];
    return home.free_at_ns <= now ? &home : nullptr;
  }
  for (uint32_t w = 0; w < plan.workers; ++w)
    if (workers[w].free_at_ns <= now) return &workers[w];
  return nullptr;
}

// Moves everything that can move at this instant.
void settle_instant(RunState& run, std::vector<SimulatedWorker>& workers) {
  for (bool moved = true; moved;) {
    moved = false;
    const int64_t now = run.now_ns();
    for (auto& segment : run.epoch.segments) {
      if (segment->done.load(std::memory_order_relaxed) || segment->busy_until_ns > now) continue;
      SimulatedWorker* worker = worker_for(*segment, workers, run.epoch.plan, now);
      if (!worker) continue;
      segment->trace = worker->trace;
      if (!advance(*segment, 1)) continue;
      moved = true;
      if (segment->busy_until_ns > now) worker->free_at_ns = segment->busy_until_ns;
    }
    for (size_t d = 1; d < run.devices.size(); ++d) run.devices[d]->kick();
  }
}

int64_t next_event_ns(const RunState& run) {
  const Epoch& epoch = run.epoch;
  const int64_t now = run.now_ns();
  int64_t next = run.options.virtual_time->next_ns();
  for (const auto& segment : epoch.segments)
    if (segment->busy_until_ns > now) next = std::min(next, segment->busy_until_ns);
  for (const auto& pace : epoch.paces) {
    const int64_t due = pace->due_ns.load(std::memory_order_relaxed);
    if (due > now) next = std::min(next, due);
  }
  for (const ResolveRun* step : epoch.timed_steps) {
    const int64_t due = step->decides_at_ns.load(std::memory_order_relaxed);
    if (due > now) next = std::min(next, due);
  }
  return next;
}

} // namespace

void run_in_virtual_time(RunState& run) {
  device::VirtualTime& time = *run.options.virtual_time;
  std::vector<SimulatedWorker> workers;
  for (uint32_t w = 0; w < run.epoch.plan.threads; ++w) workers.push_back({run.traces[w].get()});
  SecondCut second_cut(run, nullptr);
  for (;;) {
    settle_instant(run, workers);
    if (run.finished() || run.abort.load()) return;
    const int64_t next = next_event_ns(run);
    const bool held = second_cut.holds();
    second_cut.look(next == INT64_MAX);
    if (held && !second_cut.holds()) continue;
    if (next == INT64_MAX && second_cut.holds()) continue; // it has just begun
    if (next == INT64_MAX) {
      std::string lines;
      for (const std::string& line : waiting_lines(run)) lines += "; " + line;
      run.fail(Error{code::no_progress, "nothing can move any more" + lines, {}, {}, "", ""}, 0, UINT64_MAX);
      return;
    }
    if (next < time.next_ns()) time.schedule(next, [] {});
    time.step();
  }
}

} // namespace millrace::exec
