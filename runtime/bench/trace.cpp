// `millrace bench trace`: the cost of tracing every call.
//
// The same chain runs without and with RunOptions::trace_all in turn. `tick` is a run's wall time over its ticks;
// `ratio` is traced over untraced, for each pair of runs: once with handlers that do nothing, once with handlers that
// keep the processor busy for 10 µs each.
#include <millrace/handler.h>

#include "bench/measure.h"
#include "exec/run_options.h"
#include "observe/report.h"

namespace millrace::bench {

namespace {

constexpr int64_t kBusyNs = 10'000;

struct Busy final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    const int64_t until = now_ns() + kBusyNs;
    while (now_ns() < until) {
    }
    out.forward(tick, in);
  }
};

const mr_plugin& busy_plugin() {
  static const mr_handler_type busy = detail::Type<Busy>::table("bench.busy", "Is busy for 10 µs", "");
  static const mr_handler_type* const types[] = {&busy};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 1, 0};
  return plugin;
}

graph::Graph busy_chain(uint32_t handlers) {
  graph::Graph graph = chain(handlers);
  for (graph::Handler& handler : graph.handlers)
    if (handler.type == "flow.pass") handler.type = "bench.busy";
  return graph;
}

void measure(std::vector<Row>& rows, const std::string& variant, const graph::Graph& graph, uint64_t ticks,
             const mr_plugin* plugin) {
  constexpr int kPairs = 15;
  std::vector<double> plain, traced, ratios;
  for (int r = 0; r < kPairs; ++r) {
    for (const bool trace : {r % 2 == 0, r % 2 != 0}) { // neither is always the first
      exec::RunOptions options;
      options.ticks_max = ticks;
      options.spin_ns = 1'000'000'000;
      options.trace_all = trace;
      const double ns = run_graph(graph, 1, options, plugin).duration_s * 1e9 / static_cast<double>(ticks);
      (trace ? traced : plain).push_back(ns);
    }
    ratios.push_back(traced.back() / plain.back());
  }
  rows.push_back(row_of("trace", variant, "untraced_tick", "ns", plain));
  rows.push_back(row_of("trace", variant, "traced_tick", "ns", traced));
  rows.push_back(row_of("trace", variant, "ratio", "", ratios));
}

} // namespace

std::vector<Row> bench_trace() {
  std::vector<Row> rows;
  measure(rows, "16 empty", chain(16), 200'000, nullptr);
  measure(rows, "100 empty", chain(100), 50'000, nullptr);
  measure(rows, "16 × 10 µs", busy_chain(16), 2'000, &busy_plugin());
  return rows;
}

} // namespace millrace::bench
