// `millrace bench streams`: the cost of a tick when each of many streams has a clock of its own.
//
// A stream is null.source → flow.pass × 6 → null.sink: 8 handlers that do nothing. `cpu` is the process's processor
// time over its ticks, all threads together. At 30 Hz there are 64 streams: `in phase` all clocks beat together;
// `any phase` their rates differ by up to 5 %, so that their beats are spread evenly after the first second, which
// is not measured. `1 x 1920 Hz` is one such stream with as many ticks a second, and the case to compare with: a worker
// wakes as often for it as for 64 streams in any phase. `free` is as fast as the graph allows, and its ticks come
// with no pause. The cases take turns, a short stretch each, so that a noisy machine is as noisy for all. `ratio` is
// the figure of 64 streams divided by that of the one stream, with as many workers and in the same turn.
//
// `64 KiB`: each handler of a stream touches a value of 64 KiB. The source makes one, six handlers read one and make
// a copy of it, and the sink reads the last. A queue is in the middle, so that a stream has two paces.
#include <millrace/handler.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "observe/report.h"

namespace millrace::bench {

namespace {

constexpr uint32_t kManyStreams = 64, kHandlersEach = 8;
constexpr int64_t kFrameRate = 30;
constexpr int kStreamRounds = 5;
constexpr std::chrono::milliseconds kWarmFor{1000}, kMeasuredFor{1500}, kFreeFor{250};

struct Streams {
  const char* name;
  uint32_t count;
  int64_t rate; // 0: free
  bool in_phase;
  size_t beside;        // the case that it is compared with; its own number: none
  bool touches = false; // `64 KiB`
};
constexpr Streams kStreamCases[] = {{"1 x 1920 Hz", 1, kFrameRate* kManyStreams, true, 0},
                                    {"64 x 30 Hz, in phase", kManyStreams, kFrameRate, true, 0},
                                    {"64 x 30 Hz, any phase", kManyStreams, kFrameRate, false, 0},
                                    {"1 x free", 1, 0, true, 3},
                                    {"64 x free", kManyStreams, 0, true, 3},
                                    {"64 x 30 Hz, 64 KiB", kManyStreams, kFrameRate, true, 5, true},
                                    {"64 x free, 64 KiB", kManyStreams, 0, true, 6, true}};

// ---- 64 KiB --------------------------------------------------------------------------------------------------------

constexpr int64_t kTouchedBytes = int64_t{64} * 1024;

std::span<uint8_t> allocate_touched(Output<Tensor>& out, Tick& tick) {
  const int64_t shape[] = {kTouchedBytes};
  return out.allocate(tick, dtype_of<uint8_t>(), shape).elements<uint8_t>();
}

struct Make final : Handler {
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<uint8_t>(), {kTouchedBytes}); }
  void process(Tick& tick, Cpu&) {
    const std::span<uint8_t> bytes = allocate_touched(out, tick);
    std::fill(bytes.begin(), bytes.end(), static_cast<uint8_t>(tick.index()));
  }
  Output<Tensor> out{*this, "out"};
};

struct Touch final : Handler {
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<uint8_t>(), {kTouchedBytes}); }
  void process(Tick& tick, Cpu&) {
    const std::span<const uint8_t> from = in(tick).elements<uint8_t>();
    std::copy(from.begin(), from.end(), allocate_touched(out, tick).begin());
  }
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out"};
};

struct Read final : Handler {
  void process(Tick& tick, Cpu&) {
    const std::span<const uint8_t> bytes = in(tick).elements<uint8_t>();
    std::copy(bytes.begin(), bytes.end(), seen.begin());
  }
  Input<Tensor> in{*this, "in"};
  std::vector<uint8_t> seen = std::vector<uint8_t>(kTouchedBytes);
};

const mr_plugin& touching_plugin() {
  static const mr_handler_type make = detail::Type<Make>::table("bench.make", "Makes a value", "");
  static const mr_handler_type touch = detail::Type<Touch>::table("bench.touch", "Reads a value, makes one", "");
  static const mr_handler_type read = detail::Type<Read>::table("bench.read", "Reads a value", "");
  static const mr_handler_type* const types[] = {&make, &touch, &read};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 3, 0};
  return plugin;
}

void join_by_queue(graph::Edge& edge) {
  edge.policy = graph::Policy::queue;
  edge.depth = 2;
}

// --------------------------------------------------------------------------------------------------------------------

// Every stream's handlers and clock have its number in their names.
graph::Graph graph_of(const Streams& of) {
  graph::Graph graph;
  std::minstd_rand random(1); // the same in every run
  for (uint32_t s = 0; s < of.count; ++s) {
    const std::string number = std::to_string(s);
    graph::Clock clock;
    clock.name = "stream" + number;
    clock.mode = of.rate > 0 ? graph::ClockMode::realtime : graph::ClockMode::free;
    if (of.rate > 0) {
      constexpr int64_t kParts = 1000; // rates are in 1/1000 Hz, so that no two beats meet again soon
      const int64_t most = of.rate * kParts / 20;
      clock.rate = {of.rate * kParts, kParts};
      if (!of.in_phase) clock.rate.numerator += std::uniform_int_distribution<int64_t>(-most, most)(random);
    }
    graph.clocks.push_back(clock);
    const size_t first = graph.handlers.size();
    std::string last = "source" + number;
    add(graph, last, of.touches ? "bench.make" : "null.source", "");
    for (uint32_t h = 0; h + 2 < kHandlersEach; ++h) {
      const std::string name = "pass" + number + "_" + std::to_string(h);
      add(graph, name, of.touches ? "bench.touch" : "flow.pass", last);
      if (of.touches && h + 1 == kHandlersEach / 2) join_by_queue(graph.edges.back());
      last = name;
    }
    add(graph, "sink" + number, of.touches ? "bench.read" : "null.sink", last);
    for (size_t h = first; h < graph.handlers.size(); ++h) graph.handlers[h].clock = clock.name;
  }
  return graph;
}

// The processor time of all threads but this one, which makes the reports.
double others_ns() { return used_ns(CLOCK_PROCESS_CPUTIME_ID) - used_ns(CLOCK_THREAD_CPUTIME_ID); }

// The processor time of a tick, once the run has warmed up.
double ns_per_tick(const Streams& of, uint32_t workers) {
  double ns = 0;
  const auto measure = [&](exec::Run& run) {
    const bool paced = of.rate > 0;
    std::this_thread::sleep_for(paced ? kWarmFor : kFreeFor);
    const double before_ns = others_ns(); // before the report, which takes a while and reads the ticks first
    const uint64_t ticks_before = run.report().ticks_run;
    std::this_thread::sleep_for(paced ? kMeasuredFor : kFreeFor);
    const double took_ns = others_ns() - before_ns;
    ns = took_ns / static_cast<double>(run.report().ticks_run - ticks_before);
  };
  run_graph(graph_of(of), workers, {}, &touching_plugin(), measure);
  return ns;
}

} // namespace

std::vector<Row> bench_streams() {
  constexpr uint32_t kMostWorkers = 2;
  std::vector<double> ns[std::size(kStreamCases)][kMostWorkers];
  for (int r = 0; r < kStreamRounds; ++r)
    for (size_t c = 0; c < std::size(kStreamCases); ++c)
      for (uint32_t w = 0; w < kMostWorkers; ++w) ns[c][w].push_back(ns_per_tick(kStreamCases[c], w + 1));
  std::vector<Row> rows;
  for (size_t c = 0; c < std::size(kStreamCases); ++c) {
    for (uint32_t w = 0; w < kMostWorkers; ++w) {
      const std::string variant = std::string(kStreamCases[c].name) + (w == 0 ? ", 1 worker" : ", 2 workers");
      rows.push_back(row_of("streams", variant, "cpu", "ns", ns[c][w]));
      const size_t base = kStreamCases[c].beside;
      if (base == c) continue;
      std::vector<double> ratios;
      for (size_t r = 0; r < ns[c][w].size(); ++r) ratios.push_back(ns[c][w][r] / ns[base][w][r]);
      rows.push_back(row_of("streams", variant, "ratio", "", ratios));
    }
  }
  return rows;
}

} // namespace millrace::bench
