// Computes how far a pace is: its finished ticks, and what other paces may rely on; see window.h.
#include "exec/window.h"

#include <algorithm>
#include <mutex>

#include "exec/channel.h"
#include "exec/handler_run.h"
#include "exec/seats.h"
#include "plan/pace.h"

namespace millrace::exec {

namespace {

// The index of the last tick of the pace's clock such that its head or its gate has looked at all ticks up to it;
// INT64_MAX when no more come.
int64_t watermark(PaceRun& pace) {
  if (!pace.parent) {
    if (pace.ended.load(std::memory_order_acquire)) return INT64_MAX;
    const auto admitted = static_cast<int64_t>(pace.admitted.load(std::memory_order_acquire));
    if (pace.feeds.empty() || admitted == 0) return admitted - 1; // a clock's own pace runs every tick
    return static_cast<int64_t>(
        pace.tick_index[static_cast<uint64_t>(admitted - 1) & pace.mask].load(std::memory_order_acquire));
  }
  return settled_through(*pace.parent, *pace.gate);
}

} // namespace

uint64_t completed(PaceRun& pace) {
  uint64_t lowest = UINT64_MAX;
  for (SegmentRun* segment : pace.segments) {
    uint64_t at = segment->progress.load(std::memory_order_acquire);
    for (const PendingStep& pending : segment->pending_steps)
      at = std::min(at, pending.oldest_owed->load(std::memory_order_acquire));
    if (segment->device && at != UINT64_MAX) {           // when a segment is over, its device is idle
      const std::lock_guard lock(segment->fences_mutex); // the head asks, and so does the gate
      while (segment->fences_done < at && segment->fences[segment->fences_done & pace.mask].done())
        ++segment->fences_done;
      at = std::min(at, segment->fences_done);
    }
    lowest = std::min(lowest, at);
  }
  return lowest;
}

bool waits_for_device(SegmentRun& segment) {
  if (!segment.device || segment.done.load()) return false;
  completed(*segment.pace); // updates fences_done
  const std::lock_guard lock(segment.fences_mutex);
  return segment.fences_done < segment.progress.load(std::memory_order_acquire);
}

int64_t room_since_ns(const PaceRun& pace, uint64_t ordinal) {
  if (ordinal < pace.window) return INT64_MIN;
  const uint64_t freed = ordinal - pace.window;
  int64_t latest = INT64_MIN;
  for (const SegmentRun* segment : pace.segments) {
    if (freed % segment->plan->lanes != segment->plan->lane) continue;
    const int64_t at = segment->ended_at_ns[freed & pace.mask].load(std::memory_order_relaxed);
    if (at > latest) latest = at;
  }
  return latest;
}

int64_t settled_through(PaceRun& pace, const ChannelEnd& step) {
  for (;;) {
    // The watermark is read first: a tick that is let in later than this lies after it.
    const int64_t mark = watermark(pace);
    int64_t waiting = INT64_MAX; // the oldest tick that is let in and not begun
    uint64_t admitted;
    if (pace.feed) {
      const std::lock_guard lock(pace.feed->mutex);
      if (pace.feed->count > 0) waiting = static_cast<int64_t>(pace.feed->at(0).info.index);
      admitted = pace.admitted.load(std::memory_order_acquire);
    } else {
      admitted = pace.admitted.load(std::memory_order_acquire);
    }
    const uint64_t settled = step.passed.load(std::memory_order_acquire);
    if (settled >= admitted) return std::min(mark, waiting == INT64_MAX ? mark : waiting - 1);
    const uint64_t index = pace.tick_index[settled & pace.mask].load(std::memory_order_acquire);
    // The step is still at the same ordinal, so its place held this index all the time.
    if (step.passed.load(std::memory_order_acquire) == settled) return static_cast<int64_t>(index) - 1;
  }
}

namespace {

// How far what feeds a far pace has come: no tick at or before that time comes from there any more.
Passed passed_by_feeds(const PaceRun& pace) {
  Passed least{INT64_MAX, true};
  for (const FeedRun& feed : pace.feeds) {
    ChannelRun& channel = *feed.channel;
    Passed passed = channel.from ? passed_by(*channel.from) : Passed{INT64_MIN, false};
    const std::lock_guard lock(channel.mutex);
    if (channel.count > 0)
      passed = {channel.at(0).info.media_time_ns - 1, false};
    else if (channel.closed)
      passed = {INT64_MAX, true};
    else if (!channel.from)
      passed = {channel.passed_ns, false};
    least = {std::min(least.through_ns, passed.through_ns), least.ended && passed.ended};
  }
  return least;
}

// How far a step has come, if its pace has dealt with all that was let in.
Passed passed_before(const PaceRun& pace) {
  if (pace.gate) return passed_by(*pace.gate);
  if (!pace.feeds.empty()) return passed_by_feeds(pace);
  if (pace.clock->seat->vacant.load(std::memory_order_acquire)) return {INT64_MAX, true}; // nobody waits for it
  return {INT64_MIN, pace.ended.load(std::memory_order_acquire)};
}

} // namespace

Passed passed_by(const ChannelEnd& step) {
  PaceRun& pace = *step.pace;
  for (;;) {
    // The end, the gate and the feeds are read first: a tick that is let in later than this lies after them.
    const Passed before = passed_before(pace);
    int64_t waiting = INT64_MAX; // the oldest tick that is let in and not begun
    uint64_t admitted;
    if (pace.feed) {
      const std::lock_guard lock(pace.feed->mutex);
      if (pace.feed->count > 0) waiting = pace.feed->at(0).info.media_time_ns;
      admitted = pace.admitted.load(std::memory_order_acquire);
    } else {
      admitted = pace.admitted.load(std::memory_order_acquire);
    }
    const uint64_t passed = step.passed.load(std::memory_order_acquire);
    if (passed >= admitted) {
      if (waiting != INT64_MAX) return {waiting - 1, false};
      // Media time rises within a clock, so the step has passed every time up to that of the last tick that it dealt
      // with.
      return {std::max(before.through_ns, step.passed_media_ns.load(std::memory_order_acquire)), before.ended};
    }
    const int64_t next = pace.tick_media_ns[passed & pace.mask].load(std::memory_order_acquire);
    // The step is still at the same ordinal, so its place held this time all the while.
    if (step.passed.load(std::memory_order_acquire) == passed) return {next - 1, false};
  }
}

// The pace before it is asked first: what that lets in later lies after it.
bool is_stranded(const ChannelEnd& gate) {
  PaceRun& pace = *gate.pace;
  if (pace.gate ? !is_stranded(*pace.gate) : !pace.stranded.load(std::memory_order_acquire)) return false;
  if (pace.feed) {
    const std::lock_guard lock(pace.feed->mutex);
    if (pace.feed->count > 0) return false;
  }
  return gate.passed.load(std::memory_order_acquire) >= pace.admitted.load(std::memory_order_acquire);
}

uint64_t ticks_here(const PlanRun& planned, uint32_t clock) {
  uint64_t ticks = planned.paces[clock]->admitted.load(); // a clock's own pace has its number
  for (const auto& pace : planned.paces)
    if (pace->plan->kind == plan::PaceKind::far && pace->plan->clock == clock)
      ticks = std::max(ticks, pace->admitted.load());
  return ticks;
}

} // namespace millrace::exec
