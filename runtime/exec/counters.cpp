// Fills counters; see counters.h. Each count is a SingleWriter, an atomic, or under the lock of its channel.
#include "exec/counters.h"

#include <algorithm>
#include <mutex>

#include "exec/channel.h"
#include "exec/copy_step.h"
#include "exec/finish_step.h"
#include "exec/region.h"
#include "exec/run_state.h"
#include "exec/sink_latency.h"
#include "exec/window.h"
#include "plan/explained.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/predict.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// The first of several takes the place of what the sum had before.
void add_times(const Histogram& times, bool is_first, Histogram& sum) {
  if (is_first)
    sum.copy(times);
  else
    sum.merge(times);
}

// Ticks on which the step was part of its region's launch.
uint64_t launches_of(const HandlerRun& step) { return step.on.region ? uint64_t{step.on.region->replays} : 0; }

} // namespace

Counters::Counters(const RunState& run) : run_(run), places_(places_of_edges(run)) {
  const PlanRun& planned = run.planned;
  const plan::Plan& plan = planned.plan;
  handlers.resize(plan.handlers.size());
  edges.resize(plan.edges.size());
  clocks.resize(plan.clocks.size());
  transfers.resize(plan.transfers.size());
  regions.resize(planned.regions.size());
  for (size_t r = 0; r < regions.size(); ++r)
    for (const BodyRun* step : planned.regions[r]->steps) regions[r].handlers.push_back(step->plan->handler());
  crossings.resize(plan.crossings.size());
  sinks.resize(planned.sinks.size());
  lanes_.resize(handlers.size());
  sink_lanes_.resize(sinks.size());
  for (const HandlerRun* step : planned.handlers) {
    lanes_[step->plan->handler()].push_back(step);
    const auto* body = dynamic_cast<const BodyRun*>(step);
    if (body && body->finisher) handlers[step->plan->handler()].finish_times.emplace();
    for (size_t s = 0; s < sinks.size(); ++s)
      if (planned.sinks[s].sink == step->index) sink_lanes_[s].push_back(step);
  }
}

void Counters::fill() {
  const std::lock_guard lock(run_.planned.cut_mutex);
  for (uint32_t h = 0; h < handlers.size(); ++h) fill_handler(h);
  for (ClockCounters& clock : clocks) clock.lost = {};
  for (uint32_t e = 0; e < edges.size(); ++e) fill_edge(e);
  fill_clocks();
  fill_devices();
  fill_crossings();
  fill_sinks();
}

void Counters::fill_handler(uint32_t handler) {
  HandlerCounters& out = handlers[handler];
  out.calls = out.errors = 0;
  bool is_first = true;
  for (const HandlerRun* step : lanes_[handler]) {
    out.calls += step->life->calls() + launches_of(*step);
    out.errors += step->life->errors.load();
    add_times(step->times, is_first, out.times);
    if (out.finish_times) add_times(static_cast<const BodyRun&>(*step).finisher->times, is_first, *out.finish_times);
    is_first = false;
  }
}

void Counters::fill_edge(uint32_t edge) {
  EdgeCounters& out = edges[edge];
  const EdgePlaces& places = places_[edge];
  out.delivered = out.empty = out.waiting = 0;
  for (const auto& [step, input] : places.readers) {
    const InputTotals& totals = *input->totals;
    const uint64_t absent = totals.absent_at_fence + totals.absent_from_launch; // read before the sum
    out.delivered += totals.delivered + step->life->flat_calls + launches_of(*step);
    for (const SingleWriter<uint64_t>& count : totals.empty) out.empty += count;
    out.delivered -= absent;
    out.empty += absent;
  }
  if (places.item) {
    const InputTotals& totals = *places.item->totals;
    out.delivered += totals.delivered - totals.dropped_late;
    for (const SingleWriter<uint64_t>& count : totals.empty) out.empty += count;
    out.empty += totals.dropped_late;
  }
  out.dropped = dropped_on(places);
  for (const auto& [channel, entry] : places.channels) {
    if (channel->plan->kind == plan::ChannelKind::align) {
      out.clock_error_ns = as<ResolveRun>(*channel->to).error_ns;
      out.within_ns = out.clock_error_ns > 0 ? channel->plan->within_ns : 0;
    }
    const std::lock_guard lock(channel->mutex);
    out.empty += channel->left_out;
    out.waiting += channel->count;
  }
  const uint32_t clock = target_clock(run_.planned, run_.planned.plan.edges[edge]);
  if (clock != plan::kNone) add_drops(out.dropped, clocks[clock].lost);
}

void Counters::fill_clocks() {
  for (const auto& pace : run_.planned.paces) {
    if (!pace->is_clock) continue;
    ClockCounters& out = clocks[pace->plan->clock];
    out.is_here = true;
    out.ticks = ticks_here(run_.planned, pace->plan->clock);
    out.late = pace->clock->late;
    out.skipped = pace->clock->skipped;
    out.first_ns = pace->first_ns;
    copy_latencies(*pace, out.latencies);
  }
}

void Counters::fill_devices() {
  const PlanRun& planned = run_.planned;
  for (size_t t = 0; t < transfers.size(); ++t) {
    const auto& step = as<CopyRun>(*planned.step_runs[planned.plan.transfers[t].step]);
    TransferCounters& out = transfers[t];
    out.copies = step.copies;
    out.bytes = step.bytes_copied;
    out.times.copy(step.times);
  }
  for (size_t r = 0; r < regions.size(); ++r) {
    RegionCounters& out = regions[r];
    out.launches = planned.regions[r]->replays;
    out.one_by_one = planned.regions[r]->streamed;
    out.times.copy(planned.regions[r]->times);
  }
}

void Counters::fill_crossings() {
  const PlanRun& planned = run_.planned;
  for (size_t c = 0; c < crossings.size(); ++c) {
    ChannelRun& channel = *planned.channels[planned.plan.crossings[c].channel];
    CrossingCounters& out = crossings[c];
    const std::lock_guard lock(channel.mutex);
    out.parcels = channel.parcels;
    out.bytes = channel.parcel_bytes;
    out.lost = channel.lost;
    out.left_out = channel.ticks_left_out;
    out.waiting = channel.count;
    if (channel.carried) out.carried.copy(*channel.carried);
  }
}

void Counters::fill_sinks() {
  for (size_t s = 0; s < sinks.size(); ++s) {
    SinkCounters& out = sinks[s];
    out.first_ns = out.clock_error_ns = 0;
    bool is_first = true;
    for (const HandlerRun* step : sink_lanes_[s]) {
      add_times(step->sink_latency->times, is_first, out.latencies);
      is_first = false;
      out.first_ns = std::max(out.first_ns, step->sink_latency->first_ns.get());
      out.clock_error_ns = std::max(out.clock_error_ns, step->sink_latency->error_ns.get());
    }
  }
}

} // namespace millrace::exec
