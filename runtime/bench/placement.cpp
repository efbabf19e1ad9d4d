// `millrace bench placement`: compares the planner's choice with every other placement, on a simulated device.
//
// The graphs have four handlers between a source and a sink on the host: a chain, or a fork that is joined again. Each
// is planned for every combination of a handler's time on the host, the device's speed-up, the size of the values and
// the speed of the hop. Then all sixteen placements run in virtual time. The planner does not know three things: calls
// that run at the same time on the device slow down, calls have a fixed cost, and the hop's rate differs by up to 20 %.
// Calls take up to 20 % more or less than the planner was told. The error is another one for each call (`noisy`), or
// the same for all calls of a handler in one place (`wrong`), which no plan that is made beforehand can know.
//
// `of_best` is the time of a tick relative to the best of the sixteen; `within_10` is the part of all cases in which
// it is at most 1.1. `host_first` and `device_first` are the relative times if all handlers run on one side.
// The `size` cases show the crossover: ms a tick by the size of the values.
//
// The `chain` cases are not run; the evaluator alone prices them. Each is a chain of so many handlers on a host and two
// devices: the first 8 are cheap on one device, the last 8 on the other, the rest on the host, which would be full.
// `of_by_hand` is the planner's load relative to the least one if each device takes so many more, whatever the number.
#include <millrace/handler.h>

#include <algorithm>
#include <array>
#include <random>

#include "bench/measure.h"
#include "device/device.h"
#include "device/sim/sim.h"
#include "exec/run_options.h"
#include "plan/placement.h"
#include "plan/plan.h"

namespace millrace::bench {

namespace {

constexpr uint32_t kFree = 4; // number of handlers that may run on either side
constexpr uint64_t kPlacedTicks = 40;
constexpr uint32_t kSeed = 20261122;

struct Case {
  bool forked = false;
  bool wrong = false; // true: a handler's price is wrong for the whole run; false: each call varies
  double host_us = 0; // time of a call, on average
  double faster = 1;  // speed-up of the device, on average
  uint64_t bytes = 0; // size of each value
  double bytes_per_us = 0;
};

struct Work final : Handler {
  Inputs<Tensor> in{*this, "in", 2};
  Output<Tensor> out{*this, "out"};
  Param<double> host_us{*this, "host_us", 1, "a call's time on the host"};
  Param<double> device_us{*this, "device_us", 1, "and on a device"};
  Param<int64_t> bytes{*this, "bytes", 1, "of what it makes"};
  void probe(Facts& facts) override { facts.cost_us(*host_us, *device_us); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<uint8_t>(), {*bytes}); }
  void process(Tick& tick, Cpu&) {
    const std::array<int64_t, 1> shape = {*bytes};
    out.allocate(tick, dtype_of<uint8_t>(), shape);
  }
};

struct Begin final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> bytes{*this, "bytes", 1, "of what it makes"};
  void probe(Facts& facts) override { facts.cost_us(1, -1); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<uint8_t>(), {*bytes}); }
  void process(Tick& tick, Cpu&) {
    const std::array<int64_t, 1> shape = {*bytes};
    out.allocate(tick, dtype_of<uint8_t>(), shape);
  }
};

struct End final : Handler {
  Input<Tensor> in{*this, "in"};
  void probe(Facts& facts) override { facts.cost_us(1, -1); }
  void process(Tick&, Cpu&) {}
};

const mr_plugin& placement_plugin() {
  static const mr_handler_type begin = detail::Type<Begin>::table("bench.begin", "Begins", "");
  static const mr_handler_type work = detail::Type<Work>::table("bench.work", "Works", "");
  static const mr_handler_type end = detail::Type<End>::table("bench.end", "Ends", "");
  static const mr_handler_type* const types[] = {&begin, &work, &end};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 3, 0};
  return plugin;
}

// A case with the prices of its handlers, and the errors of these prices when it runs.
struct Problem {
  Case about;
  std::array<double, kFree> host_us{}, device_us{};
  std::array<double, kFree> host_error{}, device_error{}; // factors that the planner does not know
  double hop_error = 1;
};

constexpr double kHopLatencyUs = 10;
constexpr double kError = 0.2;
// The planner is not told that calls have a fixed cost, and that calls which run at once on the device slow down.
constexpr double kHostFixedUs = 2, kDeviceFixedUs = 4, kContention = 0.1;

Problem problem_of(const Case& about, std::mt19937& random) {
  const auto any = [&](double from, double to) { return std::uniform_real_distribution<double>(from, to)(random); };
  Problem problem{about, {}, {}, {}, {}, any(1 - kError, 1 + kError)};
  for (uint32_t i = 0; i < kFree; ++i) {
    problem.host_us[i] = about.host_us * any(0.5, 1.5);
    problem.device_us[i] = problem.host_us[i] / (about.faster * any(0.5, 1.5));
    problem.host_error[i] = about.wrong ? any(1 - kError, 1 + kError) : 1;
    problem.device_error[i] = about.wrong ? any(1 - kError, 1 + kError) : 1;
  }
  return problem;
}

std::string name_of(uint32_t i) { return "work" + std::to_string(i); }

graph::Graph graph_of(const Problem& problem) {
  graph::Graph graph;
  const std::string bytes = std::to_string(problem.about.bytes);
  add(graph, "begin", "bench.begin", "");
  set(graph, "bytes", bytes);
  for (uint32_t i = 0; i < kFree; ++i) {
    const bool second_branch = problem.about.forked && i == 2;
    add(graph, name_of(i), "bench.work", second_branch ? name_of(0) : i == 0 ? "begin" : name_of(i - 1));
    for (const auto& [name, value] : {std::pair{"host_us", problem.host_us[i]}, {"device_us", problem.device_us[i]}})
      set(graph, name, std::to_string(value));
    set(graph, "bytes", bytes);
    if (!problem.about.forked || i != 3) continue;
    graph::Edge other; // the join reads both branches
    other.source = name_of(1);
    other.target = name_of(3);
    graph.edges.push_back(other);
  }
  add(graph, "end", "bench.end", name_of(kFree - 1));
  add_free_clock(graph, 4);
  return graph;
}

constexpr uint32_t kChosen = UINT32_MAX; // a placement that the planner chooses

// The factor on the time of one call of one handler: the same in every placement.
double noise_of(const Problem& problem, uint32_t handler, uint64_t tick) {
  if (problem.about.wrong) return 1;
  std::minstd_rand random(static_cast<uint32_t>(tick * kFree + handler + 1));
  random.discard(3);
  return std::uniform_real_distribution<double>(1 - kError, 1 + kError)(random);
}

// Returns µs a tick, in virtual time. `placement` has a bit for each handler that runs on the device. kChosen: the
// planner chooses, and `placement` is set to its choice.
double run(const Problem& problem, uint32_t& placement) {
  graph::Graph graph = graph_of(problem);
  if (placement != kChosen)
    for (uint32_t i = 0; i < kFree; ++i) graph.handlers[1 + i].device = placement >> i & 1 ? "sim:0" : "cpu";
  const plan::HopPrice price(kHopLatencyUs, 1 / problem.about.bytes_per_us);
  device::SimOptions sim;
  sim.bytes_limit = 1ull << 32;
  sim.latency_ns = static_cast<int64_t>(kHopLatencyUs * 1000);
  sim.bandwidth_up = sim.bandwidth_down = problem.about.bytes_per_us * problem.hop_error / 1000;
  sim.contention = kContention;
  sim.bytes_moved_max = sizeof(mr_value);
  exec::RunOptions options;
  options.ticks_max = kPlacedTicks;
  options.cost_ns = [&](const std::string& handler, uint64_t tick) -> int64_t {
    if (handler.compare(0, 4, "work") != 0) return 1000;
    const auto i = static_cast<uint32_t>(handler[4] - '0');
    const double us = placement >> i & 1 ? problem.device_us[i] * problem.device_error[i] + kDeviceFixedUs
                                         : problem.host_us[i] * problem.host_error[i] + kHostFixedUs;
    return static_cast<int64_t>(us * noise_of(problem, i, tick) * 1000);
  };
  const auto see = [&](const plan::Plan& plan) {
    placement = 0;
    for (uint32_t i = 0; i < kFree; ++i) placement |= (plan.handlers[1 + i].domain ? 1u : 0u) << i;
  };
  const int64_t took_ns = run_simulated(std::move(graph), price, sim, options, &placement_plugin(), see);
  return static_cast<double>(took_ns) / 1000 / kPlacedTicks;
}

struct Measured {
  double chosen_us = 0, best_us = 0, host_us = 0, device_us = 0;
};

Measured measure(const Problem& problem) {
  Measured measured;
  uint32_t chosen = kChosen;
  measured.chosen_us = run(problem, chosen);
  measured.best_us = measured.chosen_us;
  constexpr uint32_t kAll = (1u << kFree) - 1;
  for (uint32_t placement = 0; placement <= kAll; ++placement) {
    const double us = run(problem, placement);
    measured.best_us = std::min(measured.best_us, us);
    if (placement == 0) measured.host_us = us;
    if (placement == kAll) measured.device_us = us;
  }
  return measured;
}

std::vector<Row> sweep(bool wrong) {
  std::mt19937 random(kSeed);
  std::vector<double> chosen, host, device;
  for (const bool forked : {false, true})
    for (const double host_us : {100.0, 400.0, 1600.0, 6400.0})
      for (const double faster : {0.5, 2.0, 8.0, 30.0})
        for (const uint64_t bytes : {16u << 10, 256u << 10, 4u << 20})
          for (const double bytes_per_us : {1'000.0, 12'000.0, 55'000.0}) {
            const Measured ms = measure(problem_of({forked, wrong, host_us, faster, bytes, bytes_per_us}, random));
            chosen.push_back(ms.chosen_us / ms.best_us);
            host.push_back(ms.host_us / ms.best_us);
            device.push_back(ms.device_us / ms.best_us);
          }
  const std::string variant = wrong ? "wrong" : "noisy";
  const auto worst = [&](const char* metric, const std::vector<double>& ratios) {
    return Row{"placement", variant,      metric, "ratio", *std::max_element(ratios.begin(), ratios.end()),
               0,           ratios.size()};
  };
  const auto within = std::count_if(chosen.begin(), chosen.end(), [](double ratio) { return ratio <= 1.1; });
  const double percent = 100 * static_cast<double>(within) / static_cast<double>(chosen.size());
  return {row_of("placement", variant, "of_best", "ratio", chosen),
          {"placement", variant, "within_10", "percent", percent, percent, chosen.size()},
          worst("worst", chosen),
          row_of("placement", variant, "host_first", "ratio", host),
          worst("host_first_worst", host),
          row_of("placement", variant, "device_first", "ratio", device),
          worst("device_first_worst", device)};
}

// The crossover: one problem with larger and larger values.
void add_sizes(std::vector<Row>& rows) {
  for (uint64_t bytes = 16 << 10; bytes <= 64 << 20; bytes *= 2) {
    std::mt19937 random(kSeed); // the same errors at every size
    const Measured ms = measure(problem_of({false, false, 400, 6, bytes, 12'000}, random));
    const std::string variant = "size " + std::to_string(bytes >> 10) + " KiB";
    for (const auto& [metric, us] : {std::pair{"chosen", ms.chosen_us},
                                     {"best", ms.best_us},
                                     {"host_first", ms.host_us},
                                     {"device_first", ms.device_us}})
      rows.push_back({"placement", variant, metric, "ms", us / 1000, us / 1000, kPlacedTicks});
  }
}

constexpr uint32_t kCheapest = 8; // tasks at each end of a chain that are cheap on a device

plan::Prices prices_of_chain(uint32_t tasks) {
  plan::Prices prices;
  prices.domains = 3;
  prices.workers = {1, 1, 1};
  prices.hops.assign(9, {5, 0});
  for (uint32_t d = 0; d < 3; ++d) prices.hops[d * 3 + d] = {0, 0};
  for (uint32_t t = 0; t < tasks; ++t) {
    const bool is_first = t < kCheapest, is_last = t >= tasks - kCheapest;
    prices.tasks.push_back({{is_first || is_last ? 100. : 10., is_first ? 5. : 40., is_last ? 5. : 40.}, 1});
    prices.buffers.push_back({t, 1000, {}, 1});
    if (t > 0) prices.buffers[t - 1].readers.push_back(t);
  }
  return prices;
}

double least_by_hand_us(const plan::Prices& prices) {
  const auto tasks = static_cast<uint32_t>(prices.tasks.size());
  double least_us = plan::Prices::kInfeasible;
  for (uint32_t on_device = kCheapest; 2 * on_device <= tasks; ++on_device) {
    plan::Places places(tasks, 0);
    std::fill_n(places.begin(), on_device, 1);
    std::fill_n(places.rbegin(), on_device, 2);
    least_us = std::min(least_us, plan::evaluate(prices, places).load_us);
  }
  return least_us;
}

void add_chains(std::vector<Row>& rows) {
  for (const uint32_t tasks : {33u, 36u, 48u, 100u, 1000u}) {
    const plan::Prices prices = prices_of_chain(tasks);
    const double ratio = plan::choose_places(prices, false).score.load_us / least_by_hand_us(prices);
    rows.push_back({"placement", "chain " + std::to_string(tasks), "of_by_hand", "ratio", ratio, ratio, 1});
  }
}

} // namespace

std::vector<Row> bench_placement() {
  std::vector<Row> rows;
  for (const bool wrong : {false, true})
    for (const Row& row : sweep(wrong)) rows.push_back(row);
  add_sizes(rows);
  add_chains(rows);
  return rows;
}

} // namespace millrace::bench
