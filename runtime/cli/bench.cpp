// `millrace bench chain handover`: what one handler's message costs, and what a hand-over between threads costs.
//
// chain: null.source → flow.pass × N → null.sink on one thread under `free`. A case is run several times; ns per tick
// of a run is its wall time over its ticks, accounting included. The slope from 10 to 100 handlers is the price of one
// handler-message. `tick_16` is the time of single warm ticks of 16 handlers, two clock reads included.
// handover: a handler on one worker notes the time as it returns, one on another as it is entered; one tick is in
// flight, so every value crosses threads and nothing queues. Both workers spin. `entered` is the time between the two;
// `value_read` goes on until the value's bytes were read, whose cache lines have to come over as well.
#include "cli/bench.h"

#include <millrace/handler.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "device/cpu/cpu_device.h"
#include "exec/run.h"
#include "observe/error.h"
#include "plan/plan.h"

namespace millrace::cli {

namespace {

struct Row {
  std::string bench, variant, metric, unit;
  double p50, p99;
  uint64_t n;
};

double quantile(std::vector<double> samples, double q) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  return samples[std::min(samples.size() - 1, static_cast<size_t>(q * static_cast<double>(samples.size())))];
}

// Ticks of the hand-over: the first are warm-up.
constexpr uint64_t kHandovers = 200'000, kWarmUp = 1'000;
// By tick: each thread writes its own, and they meet when the run is over.
struct HandoverTimes {
  std::vector<int64_t> left, entered, read;
};

struct Leave final : Handler {
  static HandoverTimes* times;
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = 1;
    times->left[tick.index()] = now_ns();
  }
};
HandoverTimes* Leave::times = nullptr;

struct Enter final : Handler {
  Input<Tensor> in{*this, "in"};
  Enter() { host_heavy(); } // a segment, and so a worker, of its own
  void process(Tick& tick, Cpu&) {
    Leave::times->entered[tick.index()] = now_ns();
    if (in(tick).elements<int64_t>()[0] == 1) Leave::times->read[tick.index()] = now_ns();
  }
};

const mr_plugin& bench_plugin() {
  static const mr_handler_type leave = detail::Type<Leave>::table("bench.leave", "Notes when it returns", "");
  static const mr_handler_type enter = detail::Type<Enter>::table("bench.enter", "Notes when it is entered", "");
  static const mr_handler_type* const types[] = {&leave, &enter};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 2, 0};
  return plugin;
}

exec::Report run_graph(graph::Graph graph, uint32_t workers, uint64_t ticks) {
  plugin::Registry registry;
  registry.add(bench_plugin(), "");
  plan::Facts facts = plan::prepare(graph, registry, exec::host_table());
  plan::Machine machine;
  machine.workers = workers;
  const plan::Plan plan = plan::compile(graph, facts, registry, exec::host_table(), machine, {});
  device::CpuDevice cpu;
  exec::RunOptions options;
  options.ticks_max = ticks;
  options.spin_ns = 1'000'000'000;
  exec::Run run(plan, graph, facts, {&cpu}, options);
  run.start();
  exec::Result result = run.wait();
  if (!result.ok) throw Failure(result.error);
  return result.report;
}

void add(graph::Graph& graph, const std::string& name, const std::string& type, const std::string& input) {
  graph::Handler handler;
  handler.name = name;
  handler.type = type;
  graph.handlers.push_back(handler);
  if (input.empty()) return;
  graph::Edge edge;
  edge.source = input;
  edge.target = name;
  graph.edges.push_back(edge);
}

// `handlers` counts source and sink.
graph::Graph chain(uint32_t handlers) {
  graph::Graph graph;
  add(graph, "source", "null.source", "");
  std::string last = "source";
  for (uint32_t i = 0; i + 2 < handlers; ++i) {
    const std::string name = "pass" + std::to_string(i);
    add(graph, name, "flow.pass", last);
    last = name;
  }
  add(graph, "sink", "null.sink", last);
  return graph;
}

std::vector<Row> bench_chain() {
  constexpr int kRuns = 15;
  std::vector<Row> rows;
  std::vector<double> slopes, ticks16, per_tick10, per_tick100;
  uint64_t total = 0;
  for (int r = 0; r < kRuns; ++r) {
    const auto per_tick = [&](uint32_t handlers, uint64_t ticks) {
      total += ticks;
      return run_graph(chain(handlers), 1, ticks).duration_s * 1e9 / static_cast<double>(ticks);
    };
    per_tick10.push_back(per_tick(10, 200'000));
    per_tick100.push_back(per_tick(100, 50'000));
    slopes.push_back((per_tick100.back() - per_tick10.back()) / 90);
    ticks16.push_back(per_tick(16, 200'000));
  }
  const exec::Report warm = run_graph(chain(16), 1, 2'000'000);
  rows.push_back({"chain", "10", "tick", "ns", quantile(per_tick10, 0.5), quantile(per_tick10, 0.99), kRuns});
  rows.push_back({"chain", "100", "tick", "ns", quantile(per_tick100, 0.5), quantile(per_tick100, 0.99), kRuns});
  rows.push_back({"chain", "10..100", "handler_message", "ns", quantile(slopes, 0.5), quantile(slopes, 0.99), kRuns});
  rows.push_back({"chain", "16", "tick_mean", "ns", quantile(ticks16, 0.5), quantile(ticks16, 0.99), kRuns});
  rows.push_back(
      {"chain", "16", "tick_16", "ns", warm.latency_p50_us * 1000, warm.latency_p99_us * 1000, 2'000'000 / 256});
  return rows;
}

std::vector<Row> bench_handover() {
  graph::Graph graph;
  graph::Clock clock;
  clock.in_flight = 1;
  graph.clocks.push_back(clock);
  add(graph, "leave", "bench.leave", "");
  add(graph, "enter", "bench.enter", "leave");
  HandoverTimes times;
  for (std::vector<int64_t>* list : {&times.left, &times.entered, &times.read}) list->resize(kHandovers);
  Leave::times = &times;
  run_graph(graph, 2, kHandovers);
  std::vector<double> entered, read;
  for (uint64_t i = kWarmUp; i < kHandovers; ++i) {
    entered.push_back(static_cast<double>(times.entered[i] - times.left[i]));
    read.push_back(static_cast<double>(times.read[i] - times.left[i]));
  }
  return {{"handover", "2 threads", "entered", "ns", quantile(entered, 0.5), quantile(entered, 0.99), entered.size()},
          {"handover", "2 threads", "value_read", "ns", quantile(read, 0.5), quantile(read, 0.99), read.size()}};
}

struct Bench {
  const char* name;
  std::vector<Row> (*run)();
};
constexpr Bench kBenches[] = {{"chain", &bench_chain}, {"handover", &bench_handover}};

void write_json(const std::vector<Row>& rows, const std::string& path) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    json.push_back({{"bench", row.bench},
                    {"case", row.variant},
                    {"metric", row.metric},
                    {"unit", row.unit},
                    {"p50", row.p50},
                    {"p99", row.p99},
                    {"n", row.n}});
  std::ofstream file(path);
  if (!(file << json.dump(2) << "\n")) throw Failure(111, "cannot write " + path);
}

} // namespace

int run_benches(const std::vector<std::string>& names, const std::string& json_path) {
  std::vector<std::string> known;
  for (const Bench& bench : kBenches) known.push_back(bench.name);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Failure(Error{110,
                          "there is no benchmark \"" + name + "\"",
                          {},
                          {"benchmarks: chain, handover"},
                          nearest_name(name, known),
                          ""});
  std::vector<Row> rows;
  std::printf("%-10s %-10s %-16s %10s %10s %6s %10s\n", "bench", "case", "metric", "p50", "p99", "unit", "n");
  for (const Bench& bench : kBenches) {
    if (!names.empty() && std::find(names.begin(), names.end(), bench.name) == names.end()) continue;
    for (const Row& row : bench.run()) {
      std::printf("%-10s %-10s %-16s %10.1f %10.1f %6s %10lu\n", row.bench.c_str(), row.variant.c_str(),
                  row.metric.c_str(), row.p50, row.p99, row.unit.c_str(), static_cast<unsigned long>(row.n));
      rows.push_back(row);
    }
  }
  if (!json_path.empty()) write_json(rows, json_path);
  return 0;
}

} // namespace millrace::cli
