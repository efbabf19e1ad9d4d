// The parts that benchmarks share: rows of figures, graphs of plain handlers, and functions that run a graph.
#pragma once

#include <millrace/abi.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace millrace {
struct Report;
}
namespace millrace::device {
struct SimOptions;
}
namespace millrace::exec {
class Run;
struct RunOptions;
} // namespace millrace::exec
namespace millrace::plan {
struct HopPrice;
struct Plan;
} // namespace millrace::plan

namespace millrace::bench {

// One row of the result; the JSON form `[{bench, case, metric, unit, p50, p99, n}]` is a contract.
struct Row {
  std::string bench, variant, metric, unit;
  double p50, p99;
  uint64_t n;          // number of samples
  bool printed = true; // false: the benchmark prints tables of its own, and the row is in the JSON alone
};

// The same clock as the now_ns() of handlers.
int64_t monotonic_ns();
// The processor time that a clock of the process or of a thread has counted.
double used_ns(clockid_t clock);

// 0 if there are no samples.
double quantile(std::vector<double> samples, double q);
Row row_of(const std::string& bench, const std::string& variant, const std::string& metric, const std::string& unit,
           const std::vector<double>& samples);

// Adds a handler. If `input` is not empty, joins it to the only output of that handler.
void add(graph::Graph& graph, const std::string& name, const std::string& type, const std::string& input);
// Sets a parameter of the handler that was added last.
void set(graph::Graph& graph, const std::string& param, const std::string& value);
// One clock, which runs freely.
void add_free_clock(graph::Graph& graph, uint32_t in_flight);
// null.source → flow.pass × (handlers − 2) → null.sink.
graph::Graph chain(uint32_t handlers);

// Compiles for `workers` threads and runs to the end, or until `measure` returns, which is given the run once it has
// started. `plugin`: the benchmark's own handlers, or null. Throws Failure if the run fails.
Report run_graph(graph::Graph graph, uint32_t workers, const exec::RunOptions& options,
                 const mr_plugin* plugin = nullptr, const std::function<void(exec::Run&)>& measure = nullptr);
// Runs `ticks` ticks with workers that spin, as most benchmarks need.
Report run_graph(graph::Graph graph, uint32_t workers, uint64_t ticks, const mr_plugin* plugin = nullptr);

// Runs in virtual time with two workers, on the host and one simulated device, sim:0. The plan prices the hops between
// them by `price`; `sim` says how they really are. `planned` receives the plan before it runs. Returns the ns until the
// end. Throws Failure if the run fails.
int64_t run_simulated(graph::Graph graph, const plan::HopPrice& price, device::SimOptions sim, exec::RunOptions options,
                      const mr_plugin* plugin = nullptr,
                      const std::function<void(const plan::Plan&)>& planned = nullptr);

bool is_simulated(const std::string& domain);
// Runs on the host and one device with two workers, as the command does. The graph says where each handler runs. Throws
// Failure if the run fails.
Report run_on(const std::string& domain, graph::Graph graph, const exec::RunOptions& options, const mr_plugin& plugin);

// The benchmarks that have a file of their own; the head of each file describes its rows.
std::vector<Row> bench_batch();
std::vector<Row> bench_group_overhead();
std::vector<Row> bench_group_wall();
std::vector<Row> bench_fanout();
std::vector<Row> bench_clock();
std::vector<Row> bench_conversions();
std::vector<Row> bench_counters();
std::vector<Row> bench_crossing();
std::vector<Row> bench_model();
std::vector<Row> bench_net();
std::vector<Row> bench_overlap();
std::vector<Row> bench_pool();
std::vector<Row> bench_placement();
std::vector<Row> bench_plan();
std::vector<Row> bench_slices();
std::vector<Row> bench_volume();
std::vector<Row> bench_streams();
std::vector<Row> bench_trace();
// These measure one device.
std::vector<Row> bench_gpu(const std::string& domain);
std::vector<Row> bench_transfer(const std::string& domain);

} // namespace millrace::bench
