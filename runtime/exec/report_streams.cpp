// Reports streams; see report_streams.h.
#include "exec/report_streams.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "exec/counters.h"
#include "exec/losses.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "exec/sink_latency.h"
#include "exec/window.h"
#include "observe/histogram.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

namespace {

double us_of(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

// The paces of the clock that have steps on this node.
std::vector<const PaceRun*> paces_here(const RunState& run, uint32_t clock) {
  std::vector<const PaceRun*> paces;
  for (const auto& pace : run.planned.paces)
    if (pace->plan->clock == clock && pace->plan->node == run.planned.plan.node) paces.push_back(pace.get());
  return paces;
}

// Counts that have grown since `before`.
Drops since(const Drops& before, const Drops& now) {
  Drops grown{};
  for (size_t c = 0; c < now.size(); ++c) grown[c] = now[c] > before[c] ? now[c] - before[c] : 0;
  return grown;
}

} // namespace

std::vector<StreamReport> report_streams(const RunState& run, const Counters& counters) {
  const plan::Plan& plan = run.planned.plan;
  std::vector<StreamReport> streams;
  for (const auto& pace : run.planned.paces) {
    const plan::Clock& clock = plan.clocks[pace->plan->clock];
    if (!pace->is_clock || clock.set.empty()) continue;
    const std::vector<const PaceRun*> here = paces_here(run, pace->plan->clock);
    if (here.empty()) continue; // other nodes run the stream
    const bool has_ended = std::all_of(here.begin(), here.end(),
                                       [](const PaceRun* one) { return one->ended.load(std::memory_order_acquire); });
    StreamReport out;
    Histogram latencies;
    const ClockRun& state = *pace->clock;
    const bool is_vacant = state.seat->vacant.load(std::memory_order_acquire);
    bool is_awaited = false;
    {
      const std::lock_guard lock(run.seats_mutex);
      if (is_vacant && !state.seat->is_awaited && state.seat->left.load() != Left::by_itself) continue;
      is_awaited = state.seat->is_awaited;
      out.name = state.seat->name;
      out.ticks = ticks_here(run.planned, pace->plan->clock) - state.seat->ticks_before;
      out.late = state.late - state.seat->late_before;
      out.skipped = state.skipped - state.seat->skipped_before;
      out.restarts = state.restarts - state.seat->restarts_before;
      add_drops(since(state.seat->lost_before, counters.clocks[pace->plan->clock].lost), out.dropped);
      copy_latencies(*pace, latencies); // not those of `counters`: the stream may be another one since
      if (state.seat->latencies_before) latencies.take_away(*state.seat->latencies_before);
    }
    out.set = clock.set;
    if (plan.is_over_nodes()) out.home = plan.nodes[pace->plan->node];
    out.sampled = latencies.count();
    out.sampled_us = us_of(latencies.sum_ns());
    out.p50_us = us_of(latencies.quantile_ns(0.5));
    out.p99_us = us_of(latencies.quantile_ns(0.99));
    const std::lock_guard lock(run.failure_mutex);
    const std::optional<Error>& failure = pace->clock->failure;
    const bool over = (is_vacant && !is_awaited) || has_ended;
    const bool stalls = run.now_ns() > state.stalls_at_ns.load(std::memory_order_relaxed);
    out.state = failure ? (clock.restarts && !over ? "down" : "failed") : over ? "ended" : stalls ? "stalled" : "runs";
    if (failure) {
      out.error = format_code(failure->code) + ": " + failure->what;
      out.failed_at = pace->clock->failed_at;
      if (plan.is_over_nodes())
        out.failed_on = pace->clock->failed_on.empty() ? plan.nodes[plan.node] : pace->clock->failed_on;
    }
    streams.push_back(std::move(out));
  }
  return streams;
}

const Error* error_of_all_streams(const RunState& run) {
  // No stream comes or goes any more, so what places say is read without their lock.
  std::map<std::string, std::pair<const Error*, bool>> sets; // the first error, and whether all have one
  const plan::Plan& plan = run.planned.plan;
  for (uint32_t c = 0; c < run.clocks.size(); ++c) {
    const ClockRun* const clock = run.clocks[c].get();
    const bool is_free = clock->seat->vacant.load() && clock->seat->left.load() != Left::by_itself;
    if (clock->plan->set.empty() || clock->plan->is_group || (is_free && !clock->failure)) continue;
    if (clock->plan->has_room && plan.home_of(c) != plan.node) continue; // its streams come and go elsewhere
    auto& [first, all] = sets.try_emplace(clock->plan->set, nullptr, true).first->second;
    all = all && clock->failure && !clock->seat->one_was_well;
    if (!first && clock->failure) first = &*clock->failure;
  }
  for (const auto& [set, found] : sets)
    if (found.second) return found.first;
  return nullptr;
}

} // namespace millrace::exec
