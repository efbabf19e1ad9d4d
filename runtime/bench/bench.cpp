// `millrace bench`: runs the benchmarks, prints and writes their rows. `chain` and `handover` are here: the
// costs of one handler's message and of a hand-over between threads. The others are in the files beside this one.
//
// chain: null.source → flow.pass × N → null.sink on one thread under `free`. A case is run several times; ns per tick
// of a run is its wall time over its ticks, accounting included. The slope from 10 to 100 handlers is the price of one
// handler-message. `tick_16` is the time of single warm ticks of 16 handlers, from before the source's call, three
// clock reads included.
//
// handover: a handler on one worker notes the time when it returns, and a handler on another worker notes the time when
// it is entered. One tick is in flight, so every value crosses threads and nothing queues. Both workers spin. `entered`
// is the time between the two. `value_read` ends when the value's bytes were read, so their cache lines have to come
// over as well. From a source the hand-over includes the admission of the tick. `bare word` is the least that the
// machine allows in the same run: two threads, one word, the same two clock reads.
#include "bench/bench.h"

#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/measure.h"
#include "embed/compose.h"
#include "embed/device_module.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/report.h"

namespace millrace::bench {

namespace {

// Ticks of the hand-over, and how many of the first ones are warm-up.
constexpr uint64_t kHandovers = 200'000, kWarmUp = 1'000;
// Times by tick. Each thread writes its own list; the lists are compared when the run is over.
struct HandoverTimes {
  std::vector<int64_t> left, entered, read;
};

HandoverTimes* handover_times = nullptr;

struct LeaveSource : Handler {
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = 1;
    handover_times->left[tick.index()] = now_ns();
  }
};

struct Leave final : LeaveSource { // the same, but another handler's thread admitted the tick long before
  Input<Tensor> in{*this, "in"};
  Leave() { host_heavy(); } // a segment, and so a worker, of its own
};

struct Enter final : Handler {
  Input<Tensor> in{*this, "in"};
  Enter() { host_heavy(); }
  void process(Tick& tick, Cpu&) {
    handover_times->entered[tick.index()] = now_ns();
    if (in(tick).elements<int64_t>()[0] == 1) handover_times->read[tick.index()] = now_ns();
  }
};

const mr_plugin& bench_plugin() {
  static const mr_handler_type source = detail::Type<LeaveSource>::table("bench.source", "Notes when it returns", "");
  static const mr_handler_type leave = detail::Type<Leave>::table("bench.leave", "Notes when it returns", "");
  static const mr_handler_type enter = detail::Type<Enter>::table("bench.enter", "Notes when it is entered", "");
  static const mr_handler_type* const types[] = {&source, &leave, &enter};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 3, 0};
  return plugin;
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
  const Report warm = run_graph(chain(16), 1, 2'000'000);
  rows.push_back({"chain", "10", "tick", "ns", quantile(per_tick10, 0.5), quantile(per_tick10, 0.99), kRuns});
  rows.push_back({"chain", "100", "tick", "ns", quantile(per_tick100, 0.5), quantile(per_tick100, 0.99), kRuns});
  rows.push_back({"chain", "10..100", "handler_message", "ns", quantile(slopes, 0.5), quantile(slopes, 0.99), kRuns});
  rows.push_back({"chain", "16", "tick_mean", "ns", quantile(ticks16, 0.5), quantile(ticks16, 0.99), kRuns});
  rows.push_back(
      {"chain", "16", "tick_16", "ns", warm.latency_p50_us * 1000, warm.latency_p99_us * 1000, warm.latency_sampled});
  return rows;
}

Row handover_row(const char* variant, const char* metric, const std::vector<int64_t>& from,
                 const std::vector<int64_t>& to) {
  std::vector<double> ns;
  for (uint64_t i = kWarmUp; i < kHandovers; ++i) ns.push_back(static_cast<double>(to[i] - from[i]));
  return {"handover", variant, metric, "ns", quantile(ns, 0.5), quantile(ns, 0.99), ns.size()};
}

// The hand-over of the two handlers between two bare threads, without a runtime.
void hand_words_over(HandoverTimes& times) {
  struct alignas(64) Word {
    std::atomic<uint64_t> value{0};
  } there, back;
  std::thread reader([&] {
    for (uint64_t i = 0; i < kHandovers; ++i) {
      while (there.value.load(std::memory_order_acquire) != i + 1) {
      }
      times.entered[i] = monotonic_ns();
      back.value.store(i + 1, std::memory_order_release);
    }
  });
  for (uint64_t i = 0; i < kHandovers; ++i) {
    times.left[i] = monotonic_ns();
    there.value.store(i + 1, std::memory_order_release);
    while (back.value.load(std::memory_order_acquire) != i + 1) {
    }
  }
  reader.join();
}

std::vector<Row> bench_handover() {
  HandoverTimes times;
  for (std::vector<int64_t>* list : {&times.left, &times.entered, &times.read}) list->resize(kHandovers);
  handover_times = &times;
  std::vector<Row> rows;
  const auto measure = [&](const char* variant, bool from_source) {
    graph::Graph graph;
    graph::Clock clock;
    clock.in_flight = 1;
    graph.clocks.push_back(clock);
    add(graph, "source", from_source ? "bench.source" : "null.source", "");
    if (!from_source) add(graph, "leave", "bench.leave", "source");
    add(graph, "enter", "bench.enter", from_source ? "source" : "leave");
    run_graph(graph, 2, kHandovers, &bench_plugin());
    rows.push_back(handover_row(variant, "entered", times.left, times.entered));
    rows.push_back(handover_row(variant, "value_read", times.left, times.read));
  };
  measure("handler", false);
  measure("source", true);
  hand_words_over(times);
  rows.push_back(handover_row("bare word", "entered", times.left, times.entered));
  return rows;
}

struct Bench {
  const char* name;
  std::vector<Row> (*run)();
  std::vector<Row> (*run_on)(const std::string& domain) = nullptr; // in place of `run`: called once for each device
};
constexpr Bench kBenches[] = {{"chain", &bench_chain},
                              {"handover", &bench_handover},
                              {"fanout", &bench_fanout},
                              {"clock", &bench_clock},
                              {"counters", &bench_counters},
                              {"streams", &bench_streams},
                              {"pool", &bench_pool},
                              {"plan", &bench_plan},
                              {"placement", &bench_placement},
                              {"overlap", &bench_overlap},
                              {"trace", &bench_trace},
                              {"crossing", &bench_crossing},
                              {"net", &bench_net},
                              {"model", &bench_model},
                              {"slices", &bench_slices},
                              {"volume", &bench_volume},
                              {"batch", &bench_batch},
                              {"overhead", &bench_group_overhead},
                              {"wall", &bench_group_wall},
                              {"conversions", &bench_conversions},
                              {"gpu", nullptr, &bench_gpu},
                              {"transfer", nullptr, &bench_transfer}};

// The devices to measure; if there are none, `why` gets the reason.
std::vector<std::string> domains_of(const std::string& devices, std::string& why) {
  std::vector<std::string> domains;
  if (!devices.empty()) domains = embed::parse_domains(devices);
  const embed::LoadedModule& cuda = embed::cuda_module();
  for (uint32_t d = 0; devices.empty() && d < cuda.count; ++d) domains.push_back("cuda:" + std::to_string(d));
  domains.erase(std::remove(domains.begin(), domains.end(), "cpu"), domains.end());
  if (domains.empty()) why = devices.empty() ? cuda.why : "--devices names the host alone";
  return domains;
}

// The devices for the benchmarks that measure one. If there are none, prints that such a benchmark is left out, with
// the reason, or throws Failure (MR0408) if benchmarks were asked for by name.
std::vector<std::string> domains_for(const std::vector<const Bench*>& wanted, bool by_name,
                                     const std::string& devices) {
  std::vector<std::string> domains;
  std::string why;
  for (const Bench* bench : wanted) {
    if (!bench->run_on) continue;
    if (domains.empty() && why.empty()) domains = domains_of(devices, why);
    if (!domains.empty()) break;
    const std::string name = bench->name;
    if (by_name)
      throw Failure(Error{code::device_unavailable,
                          name + " measures a device, and there is none",
                          {},
                          {why},
                          "",
                          "millrace bench " + name + " --devices sim:0"});
    std::fprintf(stderr, "left out: %s: %s\n", name.c_str(), why.c_str());
  }
  return domains;
}

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
  if (!(file << json.dump(2) << "\n")) throw Failure(code::unwritable_file, "cannot write " + path);
}

} // namespace

int run_benches(const std::vector<std::string>& names, const std::string& json_path, const std::string& devices) {
  std::vector<std::string> known;
  std::string list;
  for (const Bench& bench : kBenches) {
    known.push_back(bench.name);
    list += (list.empty() ? "" : ", ") + known.back();
  }
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Failure(Error{code::bad_command_line,
                          "there is no benchmark \"" + name + "\"",
                          {},
                          {"benchmarks: " + list},
                          nearest_name(name, known),
                          ""});
  std::vector<const Bench*> wanted;
  for (const Bench& bench : kBenches)
    if (names.empty() || std::find(names.begin(), names.end(), bench.name) != names.end()) wanted.push_back(&bench);
  const std::vector<std::string> domains = domains_for(wanted, !names.empty(), devices);
  std::vector<Row> rows;
  std::printf("%-10s %-33s %-16s %10s %10s %6s %10s\n", "bench", "case", "metric", "p50", "p99", "unit", "n");
  const auto take = [&](const std::vector<Row>& measured) {
    for (const Row& row : measured) {
      rows.push_back(row);
      if (!row.printed) continue;
      const int digits = row.unit.empty() ? 3 : 1; // a ratio has no unit
      std::printf("%-10s %-33s %-16s %10.*f %10.*f %6s %10lu\n", row.bench.c_str(), row.variant.c_str(),
                  row.metric.c_str(), digits, row.p50, digits, row.p99, row.unit.c_str(),
                  static_cast<unsigned long>(row.n));
    }
  };
  for (const Bench* bench : wanted) {
    if (bench->run) take(bench->run());
    if (bench->run_on)
      for (const std::string& domain : domains) take(bench->run_on(domain));
  }
  if (!json_path.empty()) write_json(rows, json_path);
  return 0;
}

} // namespace millrace::bench
