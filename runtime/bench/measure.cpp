// See measure.h.
#include "bench/measure.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "device/cpu/cpu_device.h"
#include "device/sim/sim.h"
#include "device/timeline.h"
#include "embed/compose.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "observe/error.h"
#include "observe/report.h"
#include "plan/compile.h"
#include "plan/domain.h"
#include "plan/machine.h"
#include "plan/plan.h"
#include "plugin/registry.h"

namespace millrace::bench {

int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double used_ns(clockid_t clock) {
  timespec used;
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) * 1e9 + static_cast<double>(used.tv_nsec);
}

double quantile(std::vector<double> samples, double q) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  return samples[std::min(samples.size() - 1, static_cast<size_t>(q * static_cast<double>(samples.size())))];
}

Row row_of(const std::string& bench, const std::string& variant, const std::string& metric, const std::string& unit,
           const std::vector<double>& samples) {
  return {bench, variant, metric, unit, quantile(samples, 0.5), quantile(samples, 0.99), samples.size()};
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

void set(graph::Graph& graph, const std::string& param, const std::string& value) {
  graph.handlers.back().params.push_back({param, value, {}, {}});
}

void add_free_clock(graph::Graph& graph, uint32_t in_flight) {
  graph::Clock clock;
  clock.mode = graph::ClockMode::free;
  clock.in_flight = in_flight;
  graph.clocks.push_back(clock);
}

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

Report run_graph(graph::Graph graph, uint32_t workers, const exec::RunOptions& options, const mr_plugin* plugin,
                 const std::function<void(exec::Run&)>& measure) {
  plugin::Registry registry;
  if (plugin) registry.add(*plugin, "");
  plan::Prepared prepared = plan::prepare(graph, registry, exec::host_table());
  plan::Machine machine;
  machine.workers = workers;
  const plan::Plan plan = plan::compile(graph, prepared, registry, exec::host_table(), machine, {});
  device::CpuDevice cpu;
  exec::Run run(plan, graph, prepared.handlers, {&cpu}, options);
  run.start();
  if (measure) {
    measure(run);
    run.stop();
  }
  Result result = run.wait();
  if (!result.ok) throw Failure(result.error);
  return std::move(result.report);
}

int64_t run_simulated(graph::Graph graph, const plan::HopPrice& price, device::SimOptions sim, exec::RunOptions options,
                      const mr_plugin* plugin, const std::function<void(const plan::Plan&)>& planned) {
  plugin::Registry registry;
  if (plugin) registry.add(*plugin, "");
  plan::Prepared prepared = plan::prepare(graph, registry, exec::host_table());
  plan::Machine machine;
  machine.workers = 2;
  machine.use(plan::domains_named({"cpu", "sim:0"}));
  machine.hops = {{"cpu", "sim:0", price}, {"sim:0", "cpu", price}};
  const plan::Plan plan = plan::compile(graph, prepared, registry, exec::host_table(), machine, {});
  if (planned) planned(plan);
  device::VirtualTime time;
  const auto pinned = std::make_shared<device::PinnedRanges>();
  device::CpuDevice host(pinned);
  sim.pinned = pinned;
  sim.time = &time;
  const std::unique_ptr<device::Device> device = device::make_sim(sim);
  options.virtual_time = &time;
  exec::Run run(plan, graph, prepared.handlers, {&host, device.get()}, options);
  run.start();
  const Result result = run.wait();
  if (!result.ok) throw Failure(result.error);
  return time.now_ns();
}

bool is_simulated(const std::string& domain) { return plan::parse_domain(domain)->kind == plan::DomainKind::sim; }

Report run_on(const std::string& domain, graph::Graph graph, const exec::RunOptions& options, const mr_plugin& plugin) {
  plugin::Registry registry;
  registry.add(plugin, "");
  embed::Choices choices;
  choices.domains = {domain, "cpu"};
  choices.threads = 2;
  choices.by_price = false;
  embed::Composition composition(std::move(graph), registry, exec::host_table(), choices);
  const std::unique_ptr<exec::Run> run = composition.make_run(options);
  run->start();
  Result result = run->wait();
  if (!result.ok) throw Failure(result.error);
  return std::move(result.report);
}

Report run_graph(graph::Graph graph, uint32_t workers, uint64_t ticks, const mr_plugin* plugin) {
  exec::RunOptions options;
  options.ticks_max = ticks;
  options.spin_ns = 1'000'000'000;
  return run_graph(std::move(graph), workers, options, plugin);
}

} // namespace millrace::bench
