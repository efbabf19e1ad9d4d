// `millrace bench overhead`: what sharing a handler between streams costs; `millrace bench wall`: groups in wall time.
//
// overhead: 64 streams of null.source → flow.pass → null.sink under `free`. `64 instances`: each stream has a
// flow.pass of its own; `shared`: one takes the items of all. `cpu` is the process's processor time over the ticks of
// all streams, all threads together; the cases take turns, and `added` is the difference of one turn.
//
// wall: 64 streams give to one handler whose call takes 200 µs and 20 µs an item, on two workers, in firings of at most
// 16, with a budget of 50 ms, in phase. `offered 120 %` and `load 70 %` are of what firings of 16 can do. `rate`:
// items a second that are done; `items`: a firing; `latency`: from the beat to the end of the sink's call, median and
// p99; `simulated`: the same by the simulator of `bench batch`. `stall`: how late a thread wakes from sleeps of 1 ms
// beside each run, median and p99: what the machine itself adds.
#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>
#include <vector>

#include "batch/controller.h"
#include "batch/sim/simulate.h"
#include "bench/measure.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "graph/unfold.h"
#include "observe/report.h"

namespace millrace::bench {

namespace {

constexpr uint32_t kGroupStreams = 64, kGroupWorkers = 2, kItemsMax = 16;
constexpr int kGroupRounds = 5;
constexpr std::chrono::milliseconds kOverheadFor{300}, kSettleFor{1500}, kWallFor{2500};
constexpr int64_t kCallNs = 200'000, kItemNs = 20'000, kBudgetNs = 50'000'000;

// ---- a handler whose call takes 200 µs and 20 µs an item ------------------------------------------------------------

struct Calls {
  std::atomic<uint64_t> calls{0}, items{0};
};
Calls spent;

struct Spend final : Handler {
  Spend() { items(MR_ITEMS_MAX); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<uint8_t>(), {1}); }
  void process(Items& all, Cpu&) {
    const int64_t until = monotonic_ns() + kCallNs + kItemNs * all.size();
    for (Tick& item : all) out.allocate(item, dtype_of<uint8_t>(), std::array<int64_t, 1>{1});
    while (monotonic_ns() < until) continue;
    spent.calls.fetch_add(1, std::memory_order_relaxed);
    spent.items.fetch_add(all.size(), std::memory_order_relaxed);
  }
  Input<Any> in{*this, "in"};
  Output<Tensor> out{*this, "out"};
};

const mr_plugin& spending_plugin() {
  static const mr_handler_type spend = detail::Type<Spend>::table("bench.spend", "Takes a time", "");
  static const mr_handler_type* const types[] = {&spend};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 1, 0};
  return plugin;
}

// ---- runs -----------------------------------------------------------------------------------------------------------

graph::Graph streams_with(const std::string& type, bool is_shared) {
  graph::Graph graph;
  graph::StreamSet set;
  set.name = "streams";
  for (uint32_t s = 0; s < kGroupStreams; ++s) set.items.push_back({"s" + std::to_string(s), {}, false, {}});
  graph.streams.push_back(set);
  add(graph, "source", "null.source", "");
  add(graph, "work", type, "source");
  add(graph, "sink", "null.sink", "work");
  for (graph::Handler& handler : graph.handlers)
    if (handler.name != "work" || !is_shared) handler.for_each = set.name;
  return graph;
}

double ns_per_item(bool is_shared, uint32_t workers) {
  double ns = 0;
  const auto measure = [&](exec::Run& run) {
    std::this_thread::sleep_for(kOverheadFor / 3);
    const double before_ns = used_ns(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t ticks_before = run.report().ticks_run;
    std::this_thread::sleep_for(kOverheadFor);
    const double took_ns = used_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
    ns = took_ns / static_cast<double>(run.report().ticks_run - ticks_before);
  };
  run_graph(graph::unfold(streams_with("flow.pass", is_shared)), workers, {}, &spending_plugin(), measure);
  return ns;
}

// ---- wall -----------------------------------------------------------------------------------------------------------

int64_t firing_ns(uint32_t items) { return kCallNs + kItemNs * items; }
// Items a second in firings of the largest size.
double most_rate() { return 1e9 * kItemsMax / static_cast<double>(firing_ns(kItemsMax)); }

// How late a thread wakes from short sleeps.
class Stalls {
 public:
  Stalls() : thread_([this] { watch(); }) {}
  std::vector<double> end() {
    over_.store(true);
    thread_.join();
    return late_us_;
  }

 private:
  void watch() {
    constexpr std::chrono::milliseconds kSleep{1};
    while (!over_.load()) {
      const int64_t due = monotonic_ns() + std::chrono::nanoseconds(kSleep).count();
      std::this_thread::sleep_for(kSleep);
      late_us_.push_back(static_cast<double>(monotonic_ns() - due) / 1e3);
    }
  }
  std::atomic<bool> over_{false};
  std::vector<double> late_us_;
  std::thread thread_;
};

struct Wall {
  double rate = 0, items = 0, p50_ms = 0, p99_ms = 0, stall_p50_us = 0, stall_p99_us = 0;
};

Wall run_wall(double offered) {
  graph::Graph graph = streams_with("bench.spend", true);
  graph::Clock clock;
  clock.mode = graph::ClockMode::realtime;
  constexpr int64_t kParts = 1000;
  clock.rate = {std::llround(offered * kParts / kGroupStreams), kParts};
  graph.clocks.push_back(clock);
  graph::Batch batch;
  batch.budget_ns = kBudgetNs;
  batch.max = kItemsMax;
  graph.handlers[1].batch = batch;
  Wall wall;
  const auto measure = [&](exec::Run& run) {
    std::this_thread::sleep_for(kSettleFor);
    Stalls stalls;
    const uint64_t items_before = spent.items.load(), calls_before = spent.calls.load();
    const int64_t from_ns = monotonic_ns();
    std::this_thread::sleep_for(kWallFor);
    const double s = static_cast<double>(monotonic_ns() - from_ns) / 1e9;
    const auto items = static_cast<double>(spent.items.load() - items_before);
    wall.rate = items / s;
    wall.items = items / static_cast<double>(spent.calls.load() - calls_before);
    const Report report = run.report();
    wall.p50_ms = report.latency_p50_us / 1e3;
    wall.p99_ms = report.latency_p99_us / 1e3;
    const std::vector<double> late_us = stalls.end();
    wall.stall_p50_us = quantile(late_us, 0.5);
    wall.stall_p99_us = quantile(late_us, 0.99);
  };
  run_graph(graph::unfold(graph), kGroupWorkers, {}, &spending_plugin(), measure);
  return wall;
}

batch::Outcome simulate_wall(double offered) {
  std::vector<batch::BucketTime> curve;
  for (uint32_t items = 1; items <= kItemsMax; items *= 2)
    curve.push_back({items, firing_ns(items), firing_ns(items), 0, false});
  batch::Scenario scenario;
  scenario.pattern = batch::Pattern::in_phase; // all clocks of a run begin together
  scenario.streams = kGroupStreams;
  scenario.rate = offered;
  scenario.budget_ns = kBudgetNs;
  scenario.pairs_gain = false;
  scenario.spread = 0;
  batch::Controller rule({kBudgetNs, 0.8, true}, offered, static_cast<int64_t>(1e9 * kGroupStreams / offered));
  return batch::simulate(scenario, curve, rule);
}

} // namespace

std::vector<Row> bench_group_overhead() {
  std::vector<double> instances[kGroupWorkers], shared[kGroupWorkers], added[kGroupWorkers];
  for (int r = 0; r < kGroupRounds; ++r)
    for (uint32_t w = 0; w < kGroupWorkers; ++w) {
      instances[w].push_back(ns_per_item(false, w + 1));
      shared[w].push_back(ns_per_item(true, w + 1));
      added[w].push_back(shared[w].back() - instances[w].back());
    }
  std::vector<Row> rows;
  for (uint32_t w = 0; w < kGroupWorkers; ++w) {
    const std::string workers = w == 0 ? ", 1 worker" : ", 2 workers";
    rows.push_back(row_of("overhead", "64 instances" + workers, "cpu", "ns", instances[w]));
    rows.push_back(row_of("overhead", "shared" + workers, "cpu", "ns", shared[w]));
    rows.push_back(row_of("overhead", "shared" + workers, "added", "ns", added[w]));
  }
  return rows;
}

std::vector<Row> bench_group_wall() {
  std::vector<Row> rows;
  for (const auto& [name, part] : {std::pair{"offered 120 %", 1.2}, std::pair{"load 70 %", 0.7}}) {
    const double offered = part * most_rate();
    std::vector<double> rate, items, p50, p99, stall_p50, stall_p99;
    for (int r = 0; r < kGroupRounds; ++r) {
      const Wall wall = run_wall(offered);
      rate.push_back(wall.rate);
      items.push_back(wall.items);
      p50.push_back(wall.p50_ms);
      p99.push_back(wall.p99_ms);
      stall_p50.push_back(wall.stall_p50_us);
      stall_p99.push_back(wall.stall_p99_us);
    }
    const batch::Outcome outcome = simulate_wall(offered);
    const batch::Scenario times;
    const double s = static_cast<double>(times.measured_to_ns - times.measured_from_ns) / 1e9;
    const double sim_rate = static_cast<double>(outcome.done) / s;
    const double sim_items = static_cast<double>(outcome.done) / static_cast<double>(outcome.firings);
    rows.push_back({"wall", name, "offered", "/s", offered, offered, 1});
    rows.push_back(row_of("wall", name, "rate", "/s", rate));
    rows.push_back({"wall", std::string(name) + ", simulated", "rate", "/s", sim_rate, sim_rate, 1});
    rows.push_back(row_of("wall", name, "items", "", items));
    rows.push_back({"wall", std::string(name) + ", simulated", "items", "", sim_items, sim_items, 1});
    rows.push_back({"wall", name, "latency", "ms", quantile(p50, 0.5), quantile(p99, 0.5), p99.size()});
    rows.push_back({"wall", std::string(name) + ", simulated", "latency", "ms", outcome.p50_ms, outcome.p99_ms, 1});
    rows.push_back({"wall", name, "stall", "us", quantile(stall_p50, 0.5), quantile(stall_p99, 0.5), p99.size()});
  }
  return rows;
}

} // namespace millrace::bench
