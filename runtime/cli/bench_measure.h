// What the benchmarks are made of: rows of figures, graphs of plain handlers, and a run of one.
#pragma once

#include <millrace/abi.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/sim/sim.h"
#include "exec/run.h"
#include "graph/graph.h"

namespace millrace::cli {

// One line of the result; the contract is `[{bench, case, metric, unit, p50, p99, n}]`.
struct Row {
  std::string bench, variant, metric, unit;
  double p50, p99;
  uint64_t n; // samples that the quantiles are of
};

// The clock that handlers' now_ns() reads.
int64_t monotonic_ns();

// 0 where there are no samples.
double quantile(std::vector<double> samples, double q);
Row row_of(const std::string& bench, const std::string& variant, const std::string& metric, const std::string& unit,
           const std::vector<double>& samples);

// Adds a handler, joined to the only output of `input` unless that is empty.
void add(graph::Graph& graph, const std::string& name, const std::string& type, const std::string& input);
// Sets a parameter of the handler that was added last.
void set(graph::Graph& graph, const std::string& param, const std::string& value);
// One clock, which runs freely.
void add_free_clock(graph::Graph& graph, uint32_t in_flight);
// null.source → flow.pass × (handlers − 2) → null.sink.
graph::Graph chain(uint32_t handlers);

// Compiles for `workers` threads and runs to the end. `plugin`: handlers of the benchmark's own, or null. Throws
// Failure where the run fails.
Report run_graph(graph::Graph graph, uint32_t workers, const exec::RunOptions& options,
                 const mr_plugin* plugin = nullptr);
// `ticks` of it, whose workers spin: what most benchmarks want.
Report run_graph(graph::Graph graph, uint32_t workers, uint64_t ticks, const mr_plugin* plugin = nullptr);

// Runs in virtual time for two workers, on the host and one simulated device, sim:0. `price` is what the plan is told
// of the hops between them, `sim` what they are; `planned` is told the plan before it runs. ns until the end. Throws
// Failure where the run fails.
int64_t run_simulated(graph::Graph graph, const plan::HopPrice& price, device::SimOptions sim, exec::RunOptions options,
                      const mr_plugin* plugin = nullptr,
                      const std::function<void(const plan::Plan&)>& planned = nullptr);

bool is_simulated(const std::string& domain);
// Runs on the host and a device, by two workers, as the command does; where each handler runs the graph says. Throws
// Failure.
Report run_on(const std::string& domain, graph::Graph graph, const exec::RunOptions& options, const mr_plugin& plugin);

// The benchmarks that have a file of their own; each says at its head what its rows are.
std::vector<Row> bench_fanout();
std::vector<Row> bench_clock();
std::vector<Row> bench_overlap();
std::vector<Row> bench_pool();
std::vector<Row> bench_placement();
std::vector<Row> bench_plan();
std::vector<Row> bench_trace();
// On a device.
std::vector<Row> bench_gpu(const std::string& domain);
std::vector<Row> bench_transfer(const std::string& domain);

} // namespace millrace::cli
