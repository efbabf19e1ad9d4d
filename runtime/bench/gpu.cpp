// `millrace bench gpu`: the host's cost of a tick on a device. It runs on every GPU, or on the devices that `--devices`
// names. A simulated device says nothing about hardware, but shows all of the runtime's own work around it.
//
// The graph is test.pattern → image.flip × (handlers − 1) → null.sink on the device, with small pictures. If the device
// is simulated, the source is on the host and there is one image.flip more. `submit` is the host's time to submit a
// tick, from when its inputs are issued until the launch has returned: saturated with three ticks in flight, or with an
// idle time between ticks. `launch_to_host` is the time from the launch's return until a handler on the host that reads
// the result is entered, with one tick in flight. `device_time` is the time of a tick on the device, if the device
// measures it.
#include <millrace/handler.h>

#include <algorithm>
#include <atomic>

#include "bench/measure.h"
#include "exec/run_options.h"
#include "observe/report.h"

namespace millrace::bench {

namespace {

std::atomic<int64_t> launched_ns{0};
std::vector<double>* arrivals_us = nullptr;

struct Arrival final : Handler {
  Input<Image> in{*this, "in"};
  void process(Tick& tick, Cpu&) {
    const int64_t launched = launched_ns.load();
    if (in.present(tick) && launched > 0) arrivals_us->push_back(static_cast<double>(now_ns() - launched) / 1000);
  }
};

const mr_plugin& arrival_plugin() {
  static const mr_handler_type arrival = detail::Type<Arrival>::table("bench.arrival", "Notes when it is entered", "");
  static const mr_handler_type* const types[] = {&arrival};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 1, 0};
  return table;
}

graph::Graph region_of(uint32_t handlers, const std::string& domain, const std::string& sink, int64_t hz,
                       uint32_t in_flight) {
  graph::Graph graph;
  add(graph, "source", "test.pattern", "");
  for (const auto& [param, value] : {std::pair{"width", "64"}, {"height", "36"}, {"format", "rgba8"}})
    set(graph, param, value);
  std::string last = "source";
  for (uint32_t h = is_simulated(domain) ? 0 : 1; h < handlers; ++h) {
    const std::string name = "flip" + std::to_string(h);
    add(graph, name, "image.flip", last);
    last = name;
  }
  add(graph, "sink", sink, last);
  for (graph::Handler& handler : graph.handlers) {
    const bool on_host = handler.type == "bench.arrival" || (is_simulated(domain) && handler.name == "source");
    handler.device = on_host ? "cpu" : domain;
  }
  add_free_clock(graph, in_flight);
  if (hz > 0) graph.clocks[0].mode = graph::ClockMode::realtime, graph.clocks[0].rate = {hz, 1};
  return graph;
}

constexpr uint64_t kWarmUpTicks = 20;

struct Idle {
  const char* name;
  int64_t hz; // 0: none
  uint64_t ticks;
};
constexpr Idle kIdles[] = {{"saturated", 0, 50'000}, {"1 ms idle", 1000, 2000}, {"16.7 ms idle", 60, 180}};

} // namespace

std::vector<Row> bench_gpu(const std::string& domain) {
  std::vector<Row> rows;
  const uint64_t less = is_simulated(domain) ? 25 : 1; // its figures are the host's, so fewer ticks are enough
  for (const uint32_t handlers : {1u, 8u, 32u}) {
    const std::string variant = domain + ", " + std::to_string(handlers);
    for (const Idle& idle : kIdles) {
      std::vector<double> submit_us;
      exec::RunOptions options;
      options.ticks_max = std::max<uint64_t>(2 * kWarmUpTicks, idle.ticks / less);
      options.on_launch = [&](uint64_t index, int64_t begin_ns, int64_t end_ns) {
        if (index > kWarmUpTicks) submit_us.push_back(static_cast<double>(end_ns - begin_ns) / 1000);
      };
      const Report report = run_on(domain, region_of(handlers, domain, "null.sink", idle.hz, idle.hz > 0 ? 0 : 3),
                                   options, arrival_plugin());
      rows.push_back(row_of("gpu", variant + " " + idle.name, "submit", "us", submit_us));
      if (idle.hz == 0 && !report.regions.empty() && report.regions[0].sampled > 0)
        rows.push_back({"gpu", variant + " " + idle.name, "device_time", "us", report.regions[0].p50_us,
                        report.regions[0].p99_us, report.regions[0].sampled});
    }
    std::vector<double> arrived_us;
    arrivals_us = &arrived_us;
    launched_ns = 0;
    exec::RunOptions options;
    options.ticks_max = 20'000 / less;
    options.on_launch = [](uint64_t index, int64_t, int64_t end_ns) {
      if (index > kWarmUpTicks) launched_ns = end_ns;
    };
    run_on(domain, region_of(handlers, domain, "bench.arrival", 0, 1), options, arrival_plugin());
    rows.push_back(row_of("gpu", variant + " one in flight", "launch_to_host", "us", arrived_us));
  }
  return rows;
}

} // namespace millrace::bench
