// Reports streams; see report_streams.h.
#include "exec/report_streams.h"

#include <mutex>
#include <utility>

#include "exec/run_state.h"
#include "exec/source.h"
#include "exec/window.h"
#include "observe/histogram.h"

namespace millrace::exec {

namespace {

double us_of(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

} // namespace

std::vector<StreamReport> report_streams(const RunState& run, const LostByClock& lost) {
  std::vector<StreamReport> streams;
  for (const auto& pace : run.epoch.paces) {
    const plan::Clock& clock = run.epoch.plan.clocks[pace->plan->clock];
    if (pace->plan->kind != plan::PaceKind::clock || clock.set.empty()) continue;
    StreamReport out;
    const ClockRun& state = *pace->clock;
    const bool is_vacant = state.place.vacant.load(std::memory_order_acquire);
    {
      const std::lock_guard lock(run.places_mutex);
      if (is_vacant && state.place.left.load() != Left::by_itself) continue;
      out.name = state.place.name;
      out.ticks = ticks_here(run.epoch, pace->plan->clock) - state.place.ticks_before;
      out.late = state.late - state.place.late_before;
      out.skipped = state.skipped - state.place.skipped_before;
      out.restarts = state.restarts - state.place.restarts_before;
    }
    out.set = clock.set;
    if (const auto at = lost.find(pace->plan->clock); at != lost.end()) out.dropped = at->second;
    Histogram latencies;
    for (const auto& segment : run.epoch.segments)
      if (segment->pace == pace.get()) latencies.merge(segment->latencies);
    out.sampled = latencies.count();
    out.sampled_us = us_of(latencies.sum_ns());
    out.p50_us = us_of(latencies.quantile_ns(0.5));
    out.p99_us = us_of(latencies.quantile_ns(0.99));
    const std::lock_guard lock(run.failure_mutex);
    const std::optional<Error>& failure = pace->clock->failure;
    const bool ended = is_vacant || pace->ended.load(std::memory_order_acquire);
    out.state = failure ? (clock.restarts && !ended ? "down" : "failed") : ended ? "ended" : "runs";
    if (failure) out.error = format_code(failure->code) + ": " + failure->what;
    streams.push_back(std::move(out));
  }
  return streams;
}

const Error* error_of_all_streams(const RunState& run) {
  std::map<std::string, std::pair<const Error*, bool>> sets; // the first error, and whether all have one
  for (const auto& clock : run.clocks) {
    if (clock->plan->set.empty() || (clock->place.vacant.load() && !clock->failure)) continue; // perhaps a free place
    auto& [first, all] = sets.try_emplace(clock->plan->set, nullptr, true).first->second;
    all = all && clock->failure;
    if (!first && clock->failure) first = &*clock->failure;
  }
  for (const auto& [set, found] : sets)
    if (found.second) return found.first;
  return nullptr;
}

} // namespace millrace::exec
