// `millrace bench overlap`: whether copies overlap with compute, by how many ticks are in flight.
//
// A handler runs on a simulated device between a source and a sink on the host, in virtual time. The copy up, the
// handler and the copy down take 10 ms each, everything else takes no time, so one tick takes 30 ms. With three ticks
// in flight each of the three engines can always be busy, which gives 100 ticks a second; more ticks in flight give no
// more. `rate` is over all ticks, including the first 20 ms, in which no tick completes.
#include "bench/measure.h"
#include "device/sim/sim.h"
#include "exec/run_options.h"
#include "plan/hops.h"

namespace millrace::bench {

namespace {

constexpr uint64_t kOverlapTicks = 1000;
constexpr int64_t kStageNs = 10'000'000;

graph::Graph up_and_down(uint32_t in_flight) {
  graph::Graph graph;
  add(graph, "source", "null.source", "");
  add(graph, "work", "test.work", "source");
  for (const char* parameter : {"cpu_us", "device_us"}) // else it would keep a real thread busy
    set(graph, parameter, "0");
  graph.handlers.back().device = "sim:0";
  add(graph, "sink", "null.sink", "work");
  graph.handlers.back().device = "cpu";
  add_free_clock(graph, in_flight);
  return graph;
}

double ticks_per_s(uint32_t in_flight) {
  const plan::HopPrice price(kStageNs / 1000.0, 0);
  device::SimOptions sim;
  sim.latency_ns = kStageNs;
  exec::RunOptions options;
  options.ticks_max = kOverlapTicks;
  options.cost_ns = [](const std::string& handler, uint64_t) { return handler == "work" ? kStageNs : int64_t{0}; };
  const int64_t took_ns = run_simulated(up_and_down(in_flight), price, sim, options);
  return 1e9 * static_cast<double>(kOverlapTicks) / static_cast<double>(took_ns);
}

} // namespace

std::vector<Row> bench_overlap() {
  std::vector<Row> rows;
  for (const uint32_t in_flight : {1u, 2u, 3u, 4u}) {
    const double rate = ticks_per_s(in_flight);
    rows.push_back({"overlap", "in_flight " + std::to_string(in_flight), "rate", "1/s", rate, rate, kOverlapTicks});
  }
  return rows;
}

} // namespace millrace::bench
