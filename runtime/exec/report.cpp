// Reports what a run has done so far, in numbers. Counters are read while they are being counted: each is a
// SingleWriter, an atomic, or under the lock of its channel.
#include "exec/report.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <tuple>

#include "exec/channel.h"
#include "exec/copy_step.h"
#include "exec/finish_step.h"
#include "exec/group.h"
#include "exec/items_run.h"
#include "exec/losses.h"
#include "exec/region.h"
#include "exec/report_groups.h"
#include "exec/report_streams.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "exec/sink_latency.h"
#include "exec/source.h"
#include "exec/window.h"
#include "exec/written_edges.h"
#include "graph/unfold.h"
#include "observe/histogram.h"
#include "observe/report.h"
#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/memory.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "plan/predict.h"

namespace millrace::exec {

namespace {

double us(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

const char* policy_name(const plan::EdgePlan& edge) {
  if (edge.delay > 0) return "delay";
  switch (edge.policy) {
    case graph::Policy::latest: return "latest";
    case graph::Policy::queue: return "queue";
    case graph::Policy::align: return "align";
    default: return "sync";
  }
}

// Notes a prediction that was wrong. It is compared with the mean of the samples, because loads are planned with means
// (5.3).
void compare(Report& report, const std::string& what, double predicted_us, double sampled_us, uint64_t sampled) {
  constexpr uint64_t kSamplesMin = 8;
  constexpr double kDifference = 0.2, kTooShortUs = 1; // 1 µs: the clock's own steps
  if (predicted_us <= 0 || sampled < kSamplesMin) return;
  const double measured_us = sampled_us / static_cast<double>(sampled);
  const double difference = std::abs(measured_us - predicted_us);
  if (difference > kDifference * predicted_us && difference > kTooShortUs)
    report.mispredictions.push_back({what, predicted_us, measured_us});
}

// Ticks on which the step was part of its region's launch.
uint64_t launches_of(const StepRun& step) { return step.on.region ? uint64_t{step.on.region->replays} : 0; }

// Adds the counts and messages of one lane to the report of its handler.
void add_words_of(const plugin::Instance& instance, HandlerReport& out) {
  for (const auto& [name, count] : instance.counts()) out.counts[name] += count;
  for (const plugin::Instance::Message& message : instance.messages()) {
    const auto known = std::find_if(out.messages.begin(), out.messages.end(), [&](const auto& said) {
      return said.level == message.level && said.sentence == message.sentence;
    });
    if (known != out.messages.end())
      known->times += message.times;
    else
      out.messages.push_back({message.level, message.sentence, message.times});
  }
}

std::string first_error_of(const RunState& run, uint32_t handler) {
  const std::lock_guard lock(run.failure_mutex);
  return run.lives[handler][0]->first_error;
}

// Entries by the names that the pipeline has: the instances of a template share one. Each entry is made at its first
// name, so they are in the order of the plan.
template <class Entry>
class ByName {
 public:
  Entry& operator[](const std::string& name) {
    const auto [at, is_new] = index_.try_emplace(name, entries_.size());
    if (is_new) entries_.emplace_back();
    return entries_[at->second];
  }
  std::deque<Entry>& entries() { return entries_; }

 private:
  std::map<std::string, size_t> index_;
  std::deque<Entry> entries_;
};

// The first call of each size finds cold pages.
void add_items(const ItemsRun& step, HandlerReport& out) {
  for (size_t b = 0; b < step.by_items.size(); ++b) {
    const Histogram& times = step.by_items[b];
    if (times.count() < 2) continue;
    out.by_items.push_back({1u << b, times.count(), us(times.sum_ns()) / static_cast<double>(times.count()),
                            us(times.quantile_ns(0.5)), us(times.quantile_ns(0.99))});
  }
}

struct HandlerSum {
  HandlerReport out;
  Histogram times, finish_times;
  double predicted_us = 0; // the sum over instances
  uint32_t instances = 0;
  bool takes_items = false;
};

void add_domain(std::string& domains, const std::string& domain) {
  const bool is_known = (", " + domains + ",").find(", " + domain + ",") != std::string::npos;
  if (!is_known) domains += (domains.empty() ? "" : ", ") + domain;
}

void report_handlers(const RunState& run, Report& report) {
  const PlanRun& planned = run.planned;
  ByName<HandlerSum> sums;
  for (uint32_t h = 0; h < planned.plan.handlers.size(); ++h) {
    const plan::HandlerPlan& handler = planned.plan.handlers[h];
    if (handler.step == plan::kNone) continue; // another node runs it
    const std::string name = graph::written_name(handler.name);
    HandlerSum& sum = sums[name];
    HandlerReport& out = sum.out;
    out.name = name;
    out.type = handler.type;
    add_domain(out.domain, planned.plan.domains[handler.domain].name);
    out.waits = handler.waits;
    ++sum.instances;
    sum.predicted_us += us(handler.cost_ns);
    for (const HandlerRun* step : planned.handlers) { // its lanes
      if (step->plan->handler() != h) continue;
      {
        const std::lock_guard lock(run.instances_mutex);
        add_words_of(*step->instance, out);
        for (const auto& [counted, count] : step->life->counts_before) out.counts[counted] += count;
      }
      const auto* source = dynamic_cast<const SourceRun*>(step);
      if (source && source->times_replaced > 0)
        out.counts["times_replaced"] += static_cast<int64_t>(source->times_replaced.get());
      if (step->life->errors.load() > 0 && out.first_error.empty()) out.first_error = first_error_of(run, h);
      const auto* body = dynamic_cast<const BodyRun*>(step);
      if (body && body->finisher) sum.finish_times.merge(body->finisher->times);
      out.calls += step->life->calls() + launches_of(*step);
      out.errors += step->life->errors.load();
      sum.times.merge(step->times);
      if (const auto* items = dynamic_cast<const ItemsRun*>(step)) {
        add_items(*items, out);
        sum.takes_items = true; // calls of one item and of several are not alike
      }
    }
  }
  for (HandlerSum& sum : sums.entries()) {
    HandlerReport& out = sum.out;
    const Histogram &times = sum.times, &finish_times = sum.finish_times;
    out.sampled = times.count();
    out.p50_us = us(times.quantile_ns(0.5));
    out.p99_us = us(times.quantile_ns(0.99));
    out.max_us = us(times.max_ns());
    out.sampled_us = us(times.sum_ns());
    out.predicted_us = sum.predicted_us / sum.instances;
    out.finish_sampled = finish_times.count();
    out.finish_p50_us = us(finish_times.quantile_ns(0.5));
    out.finish_p99_us = us(finish_times.quantile_ns(0.99));
    out.finish_max_us = us(finish_times.max_ns());
    // The calls of a handler that waits for the world, such as a window that shows a film at its speed, last as long as
    // the world lets them.
    if (!out.waits && !sum.takes_items) compare(report, out.name, out.predicted_us, out.sampled_us, out.sampled);
    report.handlers.push_back(out);
  }
}

// `lost`: gets the values that the readers of each clock did not get.
void report_edges(const RunState& run, Report& report, LostByClock& lost) {
  const PlanRun& planned = run.planned;
  ByName<EdgeReport> sums;
  const WrittenEdges written(planned);
  for (const plan::EdgePlan& edge : planned.plan.edges) {
    EdgeReport out;
    std::tie(out.from, out.to) = written.names_of(edge);
    out.policy = policy_name(edge);
    const uint32_t index = static_cast<uint32_t>(&edge - planned.plan.edges.data());
    for (const HandlerRun* step : planned.handlers) { // its lanes
      if (step->index != edge.target_step) continue;
      const InputRun& input = step->inputs[edge.target_input];
      const uint64_t absent = input.totals->absent_at_fence + input.totals->absent_from_launch; // read before the sum
      out.delivered += input.totals->delivered + step->life->flat_calls + launches_of(*step);
      for (size_t c = 0; c < static_cast<size_t>(Cause::count); ++c) out.empty += input.totals->empty[c];
      out.delivered -= absent;
      out.empty += absent;
    }
    if (const GiveRun* give = give_of(planned, edge)) {
      const InputTotals& totals = *give->inputs[edge.target_input].totals;
      out.delivered += totals.delivered - totals.dropped_late;
      for (const SingleWriter<uint64_t>& count : totals.empty) out.empty += count;
      out.empty += totals.dropped_late;
    }
    out.dropped = dropped_on(run, index);
    for (const auto& channel : planned.channels) {
      const auto& edges = channel->plan->edges;
      if (std::find(edges.begin(), edges.end(), index) == edges.end()) continue;
      if (channel->plan->kind == plan::ChannelKind::align) {
        out.clock_error_us = us(as<ResolveRun>(*channel->to).error_ns);
        out.within_us = out.clock_error_us > 0 ? us(channel->plan->within_ns) : 0;
      }
      const std::lock_guard lock(channel->mutex);
      out.empty += channel->left_out;
    }
    if (const uint32_t clock = target_clock(planned, edge); clock != plan::kNone) add_counts(out.dropped, lost[clock]);
    // Another policy makes another edge between the same two ports.
    EdgeReport& sum = sums[out.from + " " + out.to + " " + out.policy];
    out.delivered += sum.delivered;
    out.empty += sum.empty;
    add_counts(sum.dropped, out.dropped);
    out.clock_error_us = std::max(out.clock_error_us, sum.clock_error_us);
    out.within_us = std::max(out.within_us, sum.within_us);
    sum = std::move(out);
  }
  for (EdgeReport& sum : sums.entries()) report.edges.push_back(std::move(sum));
}

void report_devices(const RunState& run, Report& report) {
  const PlanRun& planned = run.planned;
  for (const auto& region : planned.regions) {
    RegionReport out;
    out.domain = planned.plan.domains[region->plan->domain].name;
    for (const BodyRun* step : region->steps) out.handlers.push_back(name_now(run, *step->handler));
    out.launches = region->replays;
    out.one_by_one = region->streamed;
    out.sampled = region->times.count();
    out.p50_us = us(region->times.quantile_ns(0.5));
    out.p99_us = us(region->times.quantile_ns(0.99));
    report.regions.push_back(out);
  }
  for (uint32_t d = RunState::kFirstAccelerator; d < run.devices.size(); ++d) {
    DeviceReport out{planned.plan.domains[d].name, run.devices[d]->gauges(), run.devices[d]->driver_calls()};
    if (!out.gauges.empty() || !out.driver_calls.empty()) report.devices.push_back(out);
  }
}

void report_transfers(const RunState& run, Report& report) {
  const PlanRun& planned = run.planned;
  for (const plan::TransferPlan& transfer : planned.plan.transfers) {
    const auto& step = as<CopyRun>(*planned.step_runs[transfer.step]);
    TransferReport out;
    out.from = transfer.route.front();
    out.to = transfer.route.back();
    const uint32_t clock = step.pace->plan->clock;
    for (uint32_t e : transfer.edges)
      out.edge += (out.edge.empty() ? "" : ", ") +
                  as_now(run, clock, planned.plan.edges[e].from + " → " + planned.plan.edges[e].to);
    out.count = step.copies;
    out.bytes = step.bytes_copied;
    out.sampled = step.times.count();
    out.p50_us = us(step.times.quantile_ns(0.5));
    out.predicted_us = transfer.predicted_us;
    compare(report, as_now(run, clock, step.plan->name), out.predicted_us, us(step.times.sum_ns()), out.sampled);
    report.transfers.push_back(out);
  }
}

void report_crossings(const RunState& run, Report& report) {
  for (const plan::CrossingPlan& crossing : run.planned.plan.crossings) {
    ChannelRun& channel = *run.planned.channels[crossing.channel];
    CrossingReport out{crossing.name, crossing.node, crossing.departs};
    const std::lock_guard lock(channel.mutex);
    out.parcels = channel.parcels;
    out.bytes = channel.parcel_bytes;
    out.lost = channel.lost;
    if (channel.carried) out.p50_us = us(channel.carried->quantile_ns(0.5));
    if (channel.carried) out.p99_us = us(channel.carried->quantile_ns(0.99));
    add_drops(channel.ticks_left_out, out.left_out);
    report.crossings.push_back(std::move(out));
  }
}

struct PathSum {
  PathReport out;
  Histogram latency;
  int64_t first = 0, error = 0;
};

void report_paths(const RunState& run, Report& report) {
  const PlanRun& planned = run.planned;
  ByName<PathSum> sums;
  for (const plan::PredictedPath& path : planned.sinks) {
    const std::string sink = graph::written_name(planned.plan.steps[path.sink].name);
    auto& [out, latency, first, error] = sums[sink];
    out.sink = sink;
    out.predicted_us = std::max(out.predicted_us, path.us); // the longest of instances
    out.unknown_costs = std::max(out.unknown_costs, path.unknown);
    for (const HandlerRun* step : planned.handlers) { // its lanes
      if (step->index != path.sink) continue;
      latency.merge(step->sink_latency->times);
      first = std::max(first, step->sink_latency->first_ns.get());
      error = std::max(error, step->sink_latency->error_ns.get());
      const uint32_t home = planned.plan.home_of(step->pace->plan->clock);
      if (home != step->pace->plan->node) out.home = planned.plan.nodes[home];
    }
  }
  for (auto& [out, latency, first, error] : sums.entries()) {
    out.clock_error_us = us(error);
    out.first_us = us(first);
    out.sampled = latency.count();
    out.p50_us = us(latency.quantile_ns(0.5));
    out.p99_us = us(latency.quantile_ns(0.99));
    out.max_us = us(latency.max_ns());
    out.sampled_us = us(latency.sum_ns());
    report.paths.push_back(out);
  }
}

void report_segments(const RunState& run, Report& report) {
  const PlanRun& planned = run.planned;
  report.revision = planned.revision;
  report.cut_again = planned.second_cut != nullptr;
  for (const plan::Segment& segment : planned.second_cut ? planned.second_cut->segments : planned.plan.segments) {
    if (segment.lane > 0) continue;
    SegmentReport out;
    out.domain = planned.plan.domains[segment.domain].name;
    for (uint32_t s : segment.steps)
      if (planned.plan.steps[s].called())
        out.handlers.push_back(
            as_now(run, planned.plan.paces[planned.plan.steps[s].pace].clock, planned.plan.steps[s].name));
    report.segments.push_back(std::move(out));
  }
}

} // namespace

Report make_report(const RunState& run) {
  const PlanRun& planned = run.planned;
  const std::lock_guard lock(planned.cut_mutex);
  Report report;
  Histogram latencies;
  for (const auto& pace : planned.paces) {
    if (!pace->is_clock) continue;
    report.ticks_run += ticks_here(planned, pace->plan->clock);
    report.ticks_late += pace->clock->late;
    report.ticks_skipped += pace->clock->skipped;
    latencies.merge(latencies_of(*pace));
    report.latency_first_us = std::max(report.latency_first_us, us(pace->first_ns));
  }
  report.latency_p50_us = us(latencies.quantile_ns(0.5));
  report.latency_p99_us = us(latencies.quantile_ns(0.99));
  report.latency_max_us = us(latencies.max_ns());
  report.latency_sampled = latencies.count();
  report.latency_sampled_us = us(latencies.sum_ns());
  report_handlers(run, report);
  LostByClock lost;
  report_edges(run, report, lost);
  report.streams = report_streams(run, lost);
  report.groups = report_groups(run);
  report_transfers(run, report);
  report_crossings(run, report);
  report_devices(run, report);
  std::sort(report.mispredictions.begin(), report.mispredictions.end(),
            [](const Misprediction& a, const Misprediction& b) {
              return std::abs(a.measured_us - a.predicted_us) > std::abs(b.measured_us - b.predicted_us);
            });
  report_paths(run, report);
  report_segments(run, report);
  for (size_t r = 0; r < planned.rings.size(); ++r) {
    PoolReport& pool = report.pools[planned.plan.domains[planned.plan.rings[r].domain].name];
    const uint64_t block = memory::block_bytes(planned.plan.rings[r].capacity);
    pool.steady_allocations = run.devices[planned.plan.rings[r].domain]->steady_allocations();
    pool.allocated_bytes += block * planned.rings[r]->length();
    pool.high_water_bytes += block * planned.rings[r]->high_water();
    for (uint32_t b = 0; b < planned.rings[r]->length(); ++b)
      pool.held_blocks += planned.rings[r]->block(b).holds.load(std::memory_order_relaxed) > 0;
  }
  return report;
}

} // namespace millrace::exec
