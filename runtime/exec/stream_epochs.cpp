// Records which epochs of a stream's clock have begun; see stream_epochs.h.
#include "exec/stream_epochs.h"

#include <algorithm>
#include <mutex>

#include "exec/run_state.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

const PaceRun& root_of(const PaceRun& pace) {
  const PaceRun* root = &pace;
  while (root->parent) root = root->parent;
  return *root;
}

bool have_ended_epoch(const PaceRun& root) {
  const uint32_t over = root.epochs_over.load(std::memory_order_relaxed);
  for (const auto& pace : root.run->planned.paces) {
    if (&root_of(*pace) != &root) continue;
    for (const SegmentRun* segment : pace->segments)
      if (segment->epochs_over.load(std::memory_order_acquire) != over && !segment->done.load()) return false;
  }
  return true;
}

namespace {

// True if no tick of the epoch is under way on this node, and none comes.
bool is_past(const RunState& run, const ClockRun& clock, uint32_t epoch) {
  const auto& paces = run.planned.paces;
  return std::none_of(paces.begin(), paces.end(), [&](const auto& pace) {
    const bool is_root_here = pace->clock == &clock && !pace->parent && pace->plan->node == run.planned.plan.node;
    return is_root_here && pace->epoch.load() <= epoch && !pace->ended.load();
  });
}

} // namespace

void record_epoch(RunState& run, ClockRun& clock, uint32_t epoch) {
  const std::lock_guard lock(run.failure_mutex);
  clock.epoch.store(std::max(epoch, clock.epoch.load()));
  if (!clock.failure || clock.failed_epoch < clock.epoch.load()) {
    clock.failure.reset();
    clock.halted.store(clock.removed.load()); // it may have been asked to go meanwhile
  }
  if (clock.fail_index.load() == UINT64_MAX || !is_past(run, clock, clock.fail_epoch.load())) return;
  clock.fail_index.store(UINT64_MAX);
  run.any_failed.store(std::any_of(run.clocks.begin(), run.clocks.end(),
                                   [](const auto& other) { return other->fail_index.load() != UINT64_MAX; }));
}

bool reaches_epoch(PaceRun& pace, const mr_tick_info& info) {
  if (pace.epochs_over.load(std::memory_order_relaxed) != info.epoch) {
    pace.epochs_over.store(info.epoch, std::memory_order_release);
    pace.stirred = true;
    pace.run->notify(pace);
  }
  if (!have_ended_epoch(pace)) return false;
  pace.first_index = info.index;
  pace.epoch.store(info.epoch);
  record_epoch(*pace.run, *pace.clock, info.epoch);
  return true;
}

} // namespace millrace::exec
