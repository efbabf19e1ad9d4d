// `millrace bench plan`: the time from a pipeline's text to its plan.
//
// The graphs are a chain of as many handlers as the case says, and a mesh of as many, in which each handler reads the
// two before it. `load` parses the file's text, makes the handlers, gives them their parameters and probes them;
// `compile` is the plan's passes; `total` is both. `handler` is the total divided by the handlers: the work is linear
// if that is the same for 64 and 1000.
//
// streams: 64 streams of a chain of eight handlers, and in turns with it, in the same run, one chain of as many
// handlers. `load` unfolds the streams too. `beside` is the total divided by that of the chain that was measured just
// before; `print` makes the text of `millrace plan`. With `priced`, six handlers of a stream, and as many of the chain,
// may run on the host or on one device, and their prices are known.
//
// placement: the search that places so many handlers, each of which may run on the host and on one device. Every
// handler reads from one or two of the four before it; costs and bytes are random.
#include "bench/measure.h"

#include <millrace/handler.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "exec/run.h"
#include "graph/unfold.h"
#include "plan/compile.h"
#include "plan/machine.h"
#include "plan/placement.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plan/print.h"
#include "plugin/registry.h"

namespace millrace::bench {

namespace {

struct Join final : Handler {
  Join() { no_allocation(); }
  Input<Any> left{*this, "left"}, right{*this, "right"};
  Output<Any> out{*this, "out", forward(left)};
  void process(Tick& tick, Cpu&) { out.forward(tick, left); }
};

const mr_plugin& mesh_plugin() {
  static const mr_handler_type join = detail::Type<Join>::table("bench.join", "Reads two", "");
  static const mr_handler_type* const types[] = {&join};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 1, 0};
  return plugin;
}

graph::Graph mesh(uint32_t handlers) {
  graph::Graph graph;
  add(graph, "a", "null.source", "");
  add(graph, "b", "flow.pass", "a");
  std::string before = "a", last = "b";
  for (uint32_t i = 0; i + 3 < handlers; ++i) {
    const std::string name = "join" + std::to_string(i);
    add(graph, name, "bench.join", last);
    graph.edges.back().target_port = "left";
    graph::Edge second;
    second.source = before;
    second.target = name;
    second.target_port = "right";
    graph.edges.push_back(second);
    before = last;
    last = name;
  }
  add(graph, "sink", "null.sink", last);
  return graph;
}

constexpr uint32_t kStreams = 64, kPerStream = 8;

// The chain with handlers that have a price on the host and on a device, in place of flow.pass.
graph::Graph priced(graph::Graph graph) {
  for (graph::Handler& handler : graph.handlers) {
    if (handler.type != "flow.pass") continue;
    handler.type = "test.work";
    handler.params = {{"cpu_us", "20", {}, {}}, {"device_us", "10", {}, {}}};
  }
  return graph;
}

// A template for each handler of the chain.
graph::Graph many_streams(graph::Graph graph) {
  for (graph::Handler& handler : graph.handlers) handler.for_each = "cameras";
  graph::StreamSet set;
  set.name = "cameras";
  set.items.resize(kStreams);
  for (uint32_t s = 0; s < kStreams; ++s) set.items[s].name = "camera" + std::to_string(s);
  graph.streams.push_back(set);
  return graph;
}

struct Times {
  std::vector<double> load, compile, total, per_handler, print;
};

void add_rows(std::vector<Row>& rows, const std::string& variant, const Times& times) {
  rows.push_back(row_of("plan", variant, "load", "ms", times.load));
  rows.push_back(row_of("plan", variant, "compile", "ms", times.compile));
  rows.push_back(row_of("plan", variant, "total", "ms", times.total));
  rows.push_back(row_of("plan", variant, "handler", "us", times.per_handler));
}

plan::Machine machine_with_device() {
  plan::Machine machine;
  machine.use(plan::domains_named({"cpu", "sim:0"}));
  const plan::HopPrice price(10, 1.0 / 10'000);
  machine.hops = {{"cpu", "sim:0", price}, {"sim:0", "cpu", price}};
  return machine;
}

void measure(const std::string& text, uint32_t handlers, Times& times, const plan::Machine& machine = {}) {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  plugin::Registry registry;
  registry.add(mesh_plugin(), "");
  const Clock::time_point begin = Clock::now();
  graph::Graph graph = graph::parse_yaml(text, "bench.yaml");
  if (!graph.streams.empty()) graph = graph::unfold(graph);
  plan::Prepared prepared = plan::prepare(graph, registry, exec::host_table());
  const Clock::time_point loaded = Clock::now();
  const plan::Plan plan = plan::compile(graph, prepared, registry, exec::host_table(), machine, {});
  const Clock::time_point compiled = Clock::now();
  const std::string printed = plan::print_text(plan);
  const Clock::time_point done = Clock::now();
  times.print.push_back(Milliseconds(done - compiled).count());
  times.load.push_back(Milliseconds(loaded - begin).count());
  times.compile.push_back(Milliseconds(compiled - loaded).count());
  times.total.push_back(Milliseconds(compiled - begin).count());
  times.per_handler.push_back(times.total.back() * 1000 / handlers);
}

void add_streams(std::vector<Row>& rows, int runs, bool with_prices) {
  const uint32_t handlers = kStreams * kPerStream;
  const auto text_of = [&](const graph::Graph& graph) { return graph::to_yaml(with_prices ? priced(graph) : graph); };
  const std::string one = text_of(chain(handlers)), many = text_of(many_streams(chain(kPerStream)));
  const plan::Machine machine = with_prices ? machine_with_device() : plan::Machine{};
  Times chained, streamed;
  std::vector<double> beside;
  for (int r = 0; r < runs; ++r) {
    measure(one, handlers, chained, machine);
    measure(many, handlers, streamed, machine);
    beside.push_back(streamed.total.back() / chained.total.back());
  }
  const std::string suffix = with_prices ? ", priced" : "";
  const std::string variant = std::to_string(kStreams) + " streams × " + std::to_string(kPerStream) + suffix;
  add_rows(rows, "chain " + std::to_string(handlers) + suffix, chained);
  add_rows(rows, variant, streamed);
  rows.push_back(row_of("plan", variant, "beside", "times", beside));
  rows.push_back(row_of("plan", variant, "print", "ms", streamed.print));
}

plan::Prices drawn_prices(uint32_t handlers) {
  std::mt19937 random(handlers);
  const auto any = [&](double from, double to) { return std::uniform_real_distribution<double>(from, to)(random); };
  plan::Prices prices;
  prices.domains = 2;
  prices.workers = {4, 1};
  prices.hops = {{0, 0}, {10, 0.00008}, {10, 0.00008}, {0, 0}};
  prices.period_us = 16'667;
  for (uint32_t t = 0; t < handlers; ++t) {
    prices.tasks.push_back({{any(1, 100), t == 0 ? plan::Prices::kInfeasible : any(1, 30)}, 1});
    prices.buffers.push_back({t, any(100, 1e6), {}, 1});
    for (uint32_t i = 0; t > 0 && i < 1 + random() % 2; ++i) {
      std::vector<uint32_t>& readers = prices.buffers[t - 1 - random() % std::min(t, 4u)].readers;
      if (readers.empty() || readers.back() != t) readers.push_back(t);
    }
  }
  return prices;
}

std::vector<double> placement_ms(uint32_t handlers, int runs) {
  const plan::Prices prices = drawn_prices(handlers);
  std::vector<double> times;
  for (int r = 0; r < runs; ++r) {
    const auto begin = std::chrono::steady_clock::now();
    plan::choose_places(prices, false);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  return times;
}

} // namespace

std::vector<Row> bench_plan() {
  constexpr int kRuns = 15;
  std::vector<Row> rows;
  for (const uint32_t handlers : {100u, 1000u})
    rows.push_back(
        row_of("plan", "placement " + std::to_string(handlers), "search", "ms", placement_ms(handlers, kRuns)));
  for (const bool meshed : {false, true}) {
    for (const uint32_t handlers : {64u, 1000u}) {
      const std::string text = graph::to_yaml(meshed ? mesh(handlers) : chain(handlers));
      const std::string variant = (meshed ? "mesh " : "chain ") + std::to_string(handlers);
      Times times;
      for (int r = 0; r < kRuns; ++r) measure(text, handlers, times);
      add_rows(rows, variant, times);
    }
  }
  for (const bool with_prices : {false, true}) add_streams(rows, kRuns, with_prices);
  return rows;
}

} // namespace millrace::bench
