// Reports what a run has done so far, in numbers: gives names to its counters (counters.h), and adds up those that have
// one name.
#include "exec/report.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <tuple>

#include "exec/counters.h"
#include "exec/items_run.h"
#include "exec/losses.h"
#include "exec/region.h"
#include "exec/report_groups.h"
#include "exec/report_streams.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "exec/source.h"
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

void report_handlers(const RunState& run, const Counters& counters, Report& report) {
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
    const HandlerCounters& counted_here = counters.handlers[h];
    out.calls += counted_here.calls;
    out.errors += counted_here.errors;
    sum.times.merge(counted_here.times);
    if (counted_here.finish_times) sum.finish_times.merge(*counted_here.finish_times);
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

void report_edges(const RunState& run, const Counters& counters, Report& report) {
  const PlanRun& planned = run.planned;
  ByName<EdgeReport> sums;
  const WrittenEdges written(planned);
  for (size_t e = 0; e < planned.plan.edges.size(); ++e) {
    const EdgeCounters& counted = counters.edges[e];
    const auto [from, to] = written.names_of(planned.plan.edges[e]);
    const char* const policy = policy_name(planned.plan.edges[e]);
    // Another policy makes another edge between the same two ports.
    EdgeReport& out = sums[from + " " + to + " " + policy];
    out.from = from;
    out.to = to;
    out.policy = policy;
    out.delivered += counted.delivered;
    out.empty += counted.empty;
    add_drops(counted.dropped, out.dropped);
    out.clock_error_us = std::max(out.clock_error_us, us(counted.clock_error_ns));
    out.within_us = std::max(out.within_us, us(counted.within_ns));
  }
  for (EdgeReport& sum : sums.entries()) report.edges.push_back(std::move(sum));
}

void report_devices(const RunState& run, const Counters& counters, Report& report) {
  const PlanRun& planned = run.planned;
  for (size_t r = 0; r < planned.regions.size(); ++r) {
    const RegionRun& region = *planned.regions[r];
    const RegionCounters& counted = counters.regions[r];
    RegionReport out;
    out.domain = planned.plan.domains[region.plan->domain].name;
    for (const BodyRun* step : region.steps) out.handlers.push_back(name_now(run, *step->handler));
    out.launches = counted.launches;
    out.one_by_one = counted.one_by_one;
    out.sampled = counted.times.count();
    out.p50_us = us(counted.times.quantile_ns(0.5));
    out.p99_us = us(counted.times.quantile_ns(0.99));
    report.regions.push_back(out);
  }
  for (uint32_t d = RunState::kFirstAccelerator; d < run.devices.size(); ++d) {
    DeviceReport out{planned.plan.domains[d].name, run.devices[d]->gauges(), run.devices[d]->driver_calls()};
    if (!out.gauges.empty() || !out.driver_calls.empty()) report.devices.push_back(out);
  }
}

void report_transfers(const RunState& run, const Counters& counters, Report& report) {
  const PlanRun& planned = run.planned;
  for (size_t t = 0; t < planned.plan.transfers.size(); ++t) {
    const plan::TransferPlan& transfer = planned.plan.transfers[t];
    const StepRun& step = *planned.step_runs[transfer.step];
    const TransferCounters& counted = counters.transfers[t];
    TransferReport out;
    out.from = transfer.route.front();
    out.to = transfer.route.back();
    const uint32_t clock = step.pace->plan->clock;
    for (uint32_t e : transfer.edges)
      out.edge += (out.edge.empty() ? "" : ", ") +
                  as_now(run, clock, planned.plan.edges[e].from + " → " + planned.plan.edges[e].to);
    out.count = counted.copies;
    out.bytes = counted.bytes;
    out.sampled = counted.times.count();
    out.p50_us = us(counted.times.quantile_ns(0.5));
    out.predicted_us = transfer.predicted_us;
    compare(report, as_now(run, clock, step.plan->name), out.predicted_us, us(counted.times.sum_ns()), out.sampled);
    report.transfers.push_back(out);
  }
}

void report_crossings(const RunState& run, const Counters& counters, Report& report) {
  for (size_t c = 0; c < run.planned.plan.crossings.size(); ++c) {
    const plan::CrossingPlan& crossing = run.planned.plan.crossings[c];
    const CrossingCounters& counted = counters.crossings[c];
    CrossingReport out{crossing.name, crossing.node, crossing.departs};
    out.parcels = counted.parcels;
    out.bytes = counted.bytes;
    out.lost = counted.lost;
    out.p50_us = us(counted.carried.quantile_ns(0.5));
    out.p99_us = us(counted.carried.quantile_ns(0.99));
    add_drops(counted.left_out, out.left_out);
    report.crossings.push_back(std::move(out));
  }
}

struct PathSum {
  PathReport out;
  Histogram latency;
  int64_t first = 0, error = 0;
};

void report_paths(const RunState& run, const Counters& counters, Report& report) {
  const PlanRun& planned = run.planned;
  ByName<PathSum> sums;
  for (size_t p = 0; p < planned.sinks.size(); ++p) {
    const plan::PredictedPath& path = planned.sinks[p];
    const SinkCounters& counted = counters.sinks[p];
    const std::string sink = graph::written_name(planned.plan.steps[path.sink].name);
    auto& [out, latency, first, error] = sums[sink];
    out.sink = sink;
    out.predicted_us = std::max(out.predicted_us, path.us); // the longest of instances
    out.unknown_costs = std::max(out.unknown_costs, path.unknown);
    latency.merge(counted.latencies);
    first = std::max(first, counted.first_ns);
    error = std::max(error, counted.clock_error_ns);
    const plan::Pace& pace = planned.plan.paces[planned.plan.steps[path.sink].pace];
    const uint32_t home = planned.plan.home_of(pace.clock);
    if (home != pace.node) out.home = planned.plan.nodes[home];
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

void report_pools(const RunState& run, Report& report) {
  const PlanRun& planned = run.planned;
  for (size_t r = 0; r < planned.rings.size(); ++r) {
    PoolReport& pool = report.pools[planned.plan.domains[planned.plan.rings[r].domain].name];
    const uint64_t block = memory::block_bytes(planned.plan.rings[r].capacity);
    pool.steady_allocations = run.devices[planned.plan.rings[r].domain]->steady_allocations();
    pool.allocated_bytes += block * planned.rings[r]->length();
    pool.high_water_bytes += block * planned.rings[r]->high_water();
    for (uint32_t b = 0; b < planned.rings[r]->length(); ++b)
      pool.held_blocks += planned.rings[r]->block(b).holds.load(std::memory_order_relaxed) > 0;
  }
}

} // namespace

Report make_report(const RunState& run) {
  const PlanRun& planned = run.planned;
  Counters counters(run);
  counters.fill();
  const std::lock_guard lock(planned.cut_mutex);
  Report report;
  Histogram latencies;
  for (const ClockCounters& clock : counters.clocks) {
    if (!clock.is_here) continue;
    report.ticks_run += clock.ticks;
    report.ticks_late += clock.late;
    report.ticks_skipped += clock.skipped;
    latencies.merge(clock.latencies);
    report.latency_first_us = std::max(report.latency_first_us, us(clock.first_ns));
  }
  report.latency_p50_us = us(latencies.quantile_ns(0.5));
  report.latency_p99_us = us(latencies.quantile_ns(0.99));
  report.latency_max_us = us(latencies.max_ns());
  report.latency_sampled = latencies.count();
  report.latency_sampled_us = us(latencies.sum_ns());
  report_handlers(run, counters, report);
  report_edges(run, counters, report);
  report.streams = report_streams(run, counters);
  report.groups = report_groups(run);
  report_transfers(run, counters, report);
  report_crossings(run, counters, report);
  report_devices(run, counters, report);
  std::sort(report.mispredictions.begin(), report.mispredictions.end(),
            [](const Misprediction& a, const Misprediction& b) {
              return std::abs(a.measured_us - a.predicted_us) > std::abs(b.measured_us - b.predicted_us);
            });
  report_paths(run, counters, report);
  report_segments(run, report);
  report_pools(run, report);
  return report;
}

} // namespace millrace::exec
