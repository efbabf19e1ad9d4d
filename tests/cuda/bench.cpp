// The runtime on a GPU beside what is written by hand, in the same process and, where times are short, in turns.
// `gpu_bench` prints a table of markdown; `gpu_bench NAME…` only those whose name begins so.
#include <millrace/handler.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench.h"
#include "driver_calls.h"
#include "rig.h"
#include "rivals.h"
#include "torch_module.h"

namespace millrace::test {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double quantile(std::vector<double>& all, double q) {
  if (all.empty()) return 0;
  std::sort(all.begin(), all.end());
  return all[std::min(all.size() - 1, static_cast<size_t>(q * static_cast<double>(all.size())))];
}

std::string p50_p99(std::vector<double>& all) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f / %.2f", quantile(all, 0.5), quantile(all, 0.99));
  return text;
}

// ---- the handler after a region ---------------------------------------------------------------------------------

// Notes when it is entered and left, and between both runs a rival's tick, so that both meet the same machine.
struct After final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick& tick, Cpu&);
};
constexpr uint64_t kEarlyTicks = 20; // looked at by nobody: workers learn how long to wait
struct Rivalry {
  GraphLoop* rival = nullptr; // null: none
  int64_t left_ns = 0;
  int64_t pause_ns = 0;
  std::vector<double> ours_us, theirs_us;
  // From the launch's return to the handler; the submission; both together.
  std::vector<double> after_us, submit_us, region_us;
  std::atomic<int64_t> begun_ns{0}, launched_ns{0};
  // Between an early tick and the last: opening and closing the device are not counted.
  uint64_t last_tick = 0;
  double cpu_begin = 0;
  int64_t wall_begin_ns = 0;
  double cores_busy = 0;
  void begin(uint64_t ticks) {
    rival = nullptr;
    left_ns = pause_ns = 0;
    launched_ns = 0;
    last_tick = ticks - 1;
    for (auto* times : {&ours_us, &theirs_us, &after_us, &submit_us, &region_us}) {
      times->clear();
      times->reserve(ticks);
    }
  }
};
Rivalry rivalry;

void pause(int64_t ns) {
  const timespec time{0, ns};
  if (ns > 0) nanosleep(&time, nullptr);
}

void After::process(Tick& tick, Cpu&) {
  const int64_t entered = now_ns();
  if (tick.index() >= kEarlyTicks)
    rivalry.after_us.push_back(static_cast<double>(entered - rivalry.launched_ns.load()) / 1000);
  if (tick.index() == kEarlyTicks) rivalry.cpu_begin = cpu_seconds(), rivalry.wall_begin_ns = now_ns();
  if (tick.index() == rivalry.last_tick)
    rivalry.cores_busy =
        (cpu_seconds() - rivalry.cpu_begin) / (static_cast<double>(now_ns() - rivalry.wall_begin_ns) / 1e9);
  if (tick.index() >= kEarlyTicks) {
    rivalry.region_us.push_back(static_cast<double>(entered - rivalry.begun_ns.load()) / 1000);
    rivalry.ours_us.push_back(static_cast<double>(entered - rivalry.left_ns) / 1000);
  }
  if (rivalry.rival) {
    pause(rivalry.pause_ns);
    const int64_t begin = now_ns();
    rivalry.rival->launch();
    rivalry.rival->await();
    rivalry.theirs_us.push_back(static_cast<double>(now_ns() - begin) / 1000);
    pause(rivalry.pause_ns);
  }
  rivalry.left_ns = now_ns();
}

const mr_plugin& bench_plugin() {
  static const mr_handler_type after = detail::Type<After>::table("b.after", "a benchmark's", "");
  static std::vector<const mr_handler_type*> types = [] {
    const mr_plugin& cuda = cuda_plugin();
    std::vector<const mr_handler_type*> all(cuda.types, cuda.types + cuda.type_count);
    all.push_back(&after);
    return all;
  }();
  static const mr_plugin table = {
      sizeof(mr_plugin), MR_ABI_VERSION, "b", "1", types.data(), static_cast<uint32_t>(types.size()), 0};
  return table;
}

// Notes when launches return.
Setup noting(Setup setup) {
  setup.options.on_launch = [](uint64_t, int64_t begin_ns, int64_t end_ns) {
    rivalry.begun_ns.store(begin_ns);
    rivalry.launched_ns.store(end_ns);
    rivalry.submit_us.push_back(static_cast<double>(end_ns - begin_ns) / 1000);
  };
  return setup;
}

} // namespace

Setup bench_setup(std::vector<std::string> domains) {
  Setup setup = on_gpu(std::move(domains));
  setup.more = &bench_plugin();
  setup.workers = 2;
  return setup;
}

Ran run_or_die(Pipeline pipeline, const Setup& setup) {
  Ran result = run(std::move(pipeline), setup);
  if (!result.ok) {
    std::fprintf(stderr, "gpu_bench: %s\n", result.error.what.c_str());
    std::exit(1);
  }
  return result;
}

namespace {

// index → count-1 handlers → `sink`: a region of `count`.
Pipeline region_of(uint32_t count, const std::string& type, const std::string& us, const std::string& sink,
                   int64_t ticks) {
  Pipeline pipeline;
  pipeline.add("source", "c.index", {{"count", std::to_string(ticks)}});
  std::string last = "source";
  for (uint32_t h = 1; h < count; ++h) {
    const std::string name = "h" + std::to_string(h);
    pipeline.add(name, type,
                 us.empty() ? std::map<std::string, std::string>{} : std::map<std::string, std::string>{{"us", us}});
    pipeline.connect(last + ".out", name + ".in");
    last = name;
  }
  pipeline.add("sink", sink).device = sink == "c.end" ? "cuda:0" : "cpu";
  pipeline.connect(last + ".out", "sink.in");
  return pipeline;
}

// ---- the benchmarks ---------------------------------------------------------------------------------------------

// The host's time to launch a graph of `nodes` kernels `ticks` times, in µs: at `hz`, or where that is 0 with three in
// flight.
std::vector<double> launches(uint32_t nodes, LaunchedBy launcher, int64_t ticks, int64_t hz) {
  GraphLoop loop(0, nodes, 0, NumbersBy::nobody, launcher);
  std::vector<double> us;
  for (int64_t n = 0; n < ticks; ++n) {
    us.push_back(static_cast<double>(loop.launch()) / 1000);
    if (!hz && n % 3 == 2) loop.await();
    if (hz) loop.await(), pause(1'000'000'000 / hz);
  }
  loop.await();
  return us;
}

// The host's time to submit a region, beside launches of a graph of as many nodes.
void bench_submit() {
  row("\n### submit: host time of a tick's submission, µs p50 / p99\n");
  row("| captured handlers | clock | ours | bare cudaGraphLaunch | at::cuda::CUDAGraph::replay |");
  row("|---|---|---|---|---|");
  const std::string no_torch = torch().why_not;
  struct Mode {
    const char* name;
    int64_t hz;
    int64_t ticks;
  };
  for (const uint32_t count : {1u, 8u, 32u}) {
    for (const Mode mode : {Mode{"saturated", 0, 200'000}, Mode{"1 ms idle between", 1000, 2000},
                            Mode{"16.7 ms idle between", 60, 180}}) {
      Pipeline pipeline = region_of(count, "c.add", "", "c.end", mode.ticks);
      if (mode.hz)
        pipeline.clock(graph::ClockMode::realtime, mode.hz);
      else
        pipeline.clock(graph::ClockMode::free, 0, 1, 3);
      Setup setup = bench_setup();
      std::vector<double> ours;
      ours.reserve(static_cast<size_t>(mode.ticks));
      setup.options.on_launch = [&](uint64_t index, int64_t begin_ns, int64_t end_ns) {
        if (index >= kEarlyTicks) ours.push_back(static_cast<double>(end_ns - begin_ns) / 1000);
      };
      run_or_die(std::move(pipeline), setup);
      const int64_t ticks = std::min<int64_t>(mode.ticks, 50'000);
      const uint32_t nodes = count + 1; // the sink adds no node, the tick's numbers do
      std::vector<double> bare = launches(nodes, LaunchedBy::cuda, ticks, mode.hz);
      std::vector<double> torch;
      if (no_torch.empty()) torch = launches(nodes, LaunchedBy::torch, ticks, mode.hz);
      row("| %u | %s | %s | %s | %s |", count, mode.name, p50_p99(ours).c_str(), p50_p99(bare).c_str(),
          no_torch.empty() ? p50_p99(torch).c_str() : no_torch.c_str());
    }
  }
}

void compare(const char* name, uint32_t count, const std::string& type, const std::string& us, uint64_t spin_ns,
             int64_t ticks, int64_t pause_ns = 0, uint32_t workers = 2) {
  GraphLoop rival(0, spin_ns > 0 ? count - 1 : count, spin_ns); // the source of ours does not spin
  for (int n = 0; n < 100; ++n) rival.launch(), rival.await();
  rivalry.begin(static_cast<uint64_t>(ticks));
  rivalry.rival = &rival;
  rivalry.pause_ns = pause_ns;
  Pipeline pipeline = region_of(count, type, us, "b.after", ticks);
  pipeline.clock(graph::ClockMode::free, 0, 1, 1);
  Setup setup = noting(bench_setup());
  setup.workers = workers;
  run_or_die(std::move(pipeline), setup);
  std::vector<double>&a = rivalry.region_us, &b = rivalry.theirs_us, &c = rivalry.after_us, &d = rivalry.submit_us,
  &e = rivalry.ours_us;
  row("| %s | %zu | %.1f / %.1f / %.1f / %.1f | %.1f / %.1f / %.1f / %.1f | %+.1f / %+.1f / %+.1f | %.1f / %.1f | %.1f "
      "/ "
      "%.1f | %.1f / %.1f | %.2f |",
      name, a.size(), quantile(a, 0.5), quantile(a, 0.99), quantile(a, 0.999), a.back(), quantile(b, 0.5),
      quantile(b, 0.99), quantile(b, 0.999), b.back(), quantile(a, 0.5) - quantile(b, 0.5),
      quantile(a, 0.99) - quantile(b, 0.99), quantile(a, 0.999) - quantile(b, 0.999), quantile(d, 0.5),
      quantile(d, 0.99), quantile(c, 0.5), quantile(c, 0.99), quantile(e, 0.5), quantile(e, 0.99), rivalry.cores_busy);
}

// From the end of one CPU handler's call to the beginning of the next: admission, submission, the region, its result
// down, and the way into the handler. The rival launches its graph and polls its flag, in turns.
void bench_after() {
  row("\n### after: a region and the CPU handler after it, one tick in flight, in turns with a bare graph and "
      "flag\n");
  row("| region | ticks | launch begun → handler, µs p50 / p99 / p99.9 / max | bare graph and flag | ours − bare p50 / "
      "p99 / "
      "p99.9 | of it submission p50 / p99 | launch returned → handler p50 / p99 | whole tick p50 / p99 | cores busy |");
  row("|---|---|---|---|---|---|---|---|---|");
  compare("1 handler", 1, "c.add", "", 0, 100'000);
  compare("8 handlers", 8, "c.add", "", 0, 100'000);
  compare("32 handlers", 32, "c.add", "", 0, 50'000);
  compare("8 handlers, 1 ms idle between", 8, "c.add", "", 0, 1500, 1'000'000);
  compare("five of 10 µs", 6, "c.spin", "10", 10'000, 300'000);
  compare("8 handlers, one worker", 8, "c.add", "", 0, 100'000, 0, 1);
  compare("five of 10 µs, one worker", 6, "c.spin", "10", 10'000, 300'000, 0, 1);
}

// How the numbers of a tick come to its kernels: the four ways in turns, by hand.
void bench_numbers() {
  row("\n### numbers: how the numbers of a tick come to a graph of 8 kernels, 50,000 ticks each in turns\n");
  row("| way | host, µs p50 / p99 | launch to flag, µs p50 / p99 |");
  row("|---|---|---|");
  const char* const names[] = {"none", "argument of a kernel, set anew", "kernel reads mapped memory", "copy node"};
  std::vector<std::unique_ptr<GraphLoop>> loops;
  for (const NumbersBy by : {NumbersBy::nobody, NumbersBy::argument, NumbersBy::mapped, NumbersBy::copy})
    loops.push_back(std::make_unique<GraphLoop>(0, 8, 0, by));
  std::vector<double> host[4], all[4];
  for (int n = 0; n < 50'000; ++n) {
    for (int way = 0; way < 4; ++way) {
      const int64_t begin = now_ns();
      host[way].push_back(static_cast<double>(loops[static_cast<size_t>(way)]->launch()) / 1000);
      loops[static_cast<size_t>(way)]->await();
      all[way].push_back(static_cast<double>(now_ns() - begin) / 1000);
    }
  }
  for (int way = 0; way < 4; ++way)
    row("| %s | %.2f / %.2f | %.2f / %.2f |", names[way], quantile(host[way], 0.5), quantile(host[way], 0.99),
        quantile(all[way], 0.5), quantile(all[way], 0.99));
}

// The same region as one thread sees it that does nothing but look at the flag: by so much the device itself varies.
void bench_polled(uint64_t spin_ns) {
  GraphLoop rival(0, 1, spin_ns);
  std::vector<double> seen_us;
  for (int n = 0; n < 1020; ++n) {
    rival.launch();
    const int64_t launched = now_ns();
    rival.await();
    if (n >= 20) seen_us.push_back(static_cast<double>(now_ns() - launched - static_cast<int64_t>(spin_ns)) / 1000);
  }
  row("| bare graph, polled all the time | %.1f / %.1f / %.1f | | 1.00 |", quantile(seen_us, 0.5),
      quantile(seen_us, 0.9), quantile(seen_us, 0.99));
}

// A region so long that workers sleep: without a rival in between, so that the cores' load is ours.
void bench_asleep() {
  row("\n### asleep: a region of 2 ms and the CPU handler after it\n");
  row("| | launch returned → handler, µs p50 / p90 / p99 beyond 2 ms | the whole tick, p50 / p99 | cores busy |");
  row("|---|---|---|---|");
  for (const uint32_t workers : {2u, 1u}) {
    constexpr int64_t kTicks = 3000;
    rivalry.begin(kTicks);
    Pipeline pipeline = region_of(2, "c.spin", "2000", "b.after", kTicks);
    pipeline.clock(graph::ClockMode::free, 0, 1, 1);
    Setup setup = noting(bench_setup());
    setup.workers = workers;
    run_or_die(std::move(pipeline), setup);
    row("| %u worker%s | %.1f / %.1f / %.1f | %.1f / %.1f | %.2f |", workers, workers == 1 ? "" : "s",
        quantile(rivalry.after_us, 0.5) - 2000, quantile(rivalry.after_us, 0.9) - 2000,
        quantile(rivalry.after_us, 0.99) - 2000, quantile(rivalry.ours_us, 0.5) - 2000,
        quantile(rivalry.ours_us, 0.99) - 2000, rivalry.cores_busy);
  }
  bench_polled(2'000'000);
}

// Device time that a handler adds to a region: from 8 to 128, saturated.
void bench_slope() {
  row("\n### slope: device time added by a dependent handler of one kernel\n");
  row("| | 8 | 128 | a handler |");
  row("|---|---|---|---|");
  double ours[2] = {}, theirs[2] = {};
  const uint32_t counts[2] = {8, 128};
  for (int c = 0; c < 2; ++c) {
    Pipeline pipeline = region_of(counts[c], "c.add", "", "c.end", 50'000);
    pipeline.clock(graph::ClockMode::free, 0, 1, 3);
    const Result result = run_or_die(std::move(pipeline), bench_setup());
    ours[c] = result.report.regions[0].p50_us;
    GraphLoop rival(0, counts[c], 0);
    const int64_t begin = now_ns();
    for (int n = 0; n < 20'000; ++n) {
      rival.launch();
      if (n % 3 == 2) rival.await();
    }
    rival.await();
    theirs[c] = static_cast<double>(now_ns() - begin) / 1000 / 20'000;
  }
  row("| ours, by events around the launch, µs | %.1f | %.1f | %.2f |", ours[0], ours[1], (ours[1] - ours[0]) / 120);
  row("| bare graph, saturated, µs | %.1f | %.1f | %.2f |", theirs[0], theirs[1], (theirs[1] - theirs[0]) / 120);
}

// Frames up, through a kernel, and down.
void bench_copies() {
  row("\n### copies: frames of 4K RGBA (33.2 MB) up, through a kernel, and down; µs a frame\n");
  row("| ticks in flight | ours | by hand | ours / by hand | naive |");
  row("|---|---|---|---|---|");
  constexpr uint64_t kBytes = 3840 * 2160 * 4;
  const double naive = frames_naively(kBytes, 50) / 50 * 1e6;
  for (const uint32_t depth : {1u, 3u, 4u}) {
    constexpr int64_t kFrames = 2000;
    Pipeline pipeline;
    pipeline.add("source", "c.frames", {{"bytes", std::to_string(kBytes)}, {"count", std::to_string(kFrames)}});
    pipeline.add("move", "c.move").device = "cuda:0";
    pipeline.add("sink", "null.sink").device = "cpu";
    pipeline.connect("source.out", "move.in");
    pipeline.connect("move.out", "sink.in");
    pipeline.clock(graph::ClockMode::free, 0, 1, depth);
    const Result result = run_or_die(std::move(pipeline), bench_setup());
    const double ours = result.report.duration_s / kFrames * 1e6;
    const double hand = frames_by_hand(kBytes, depth, kFrames) / kFrames * 1e6;
    row("| %u | %.1f | %.1f | %.3f | %.0f |", depth, ours, hand, ours / hand, naive);
  }
}

// Those whose count differs between a short run and a long one, a tick of the difference.
std::string a_tick(const std::map<std::string, uint64_t>& few, const std::map<std::string, uint64_t>& many,
                   int64_t ticks) {
  std::string text;
  for (const auto& [name, count] : many) {
    const auto before = few.find(name);
    const double calls =
        (static_cast<double>(count) - (before == few.end() ? 0 : static_cast<double>(before->second))) /
        static_cast<double>(ticks);
    char one[96];
    std::snprintf(one, sizeof one, "%s%s %.3f", text.empty() ? "" : ", ", name.c_str(), calls);
    if (calls >= 0.0005) text += one;
  }
  return text;
}

// Calls of the driver in steady state, a tick: as our table of calls counts them, and as CUPTI does, which sees what
// CUDA's runtime makes of them.
void bench_calls() {
  row("\n### calls: into CUDA and the driver, a steady tick (difference of two runs)\n");
  row("| pipeline | our calls | all calls into the driver, by CUPTI |");
  row("|---|---|---|");
  for (const char* sink : {"c.end", "b.after"}) {
    std::map<std::string, uint64_t> ours[2], all[2];
    std::string why_not;
    const int64_t ticks[2] = {1000, 11'000};
    for (int r = 0; r < 2; ++r) {
      rivalry.begin(static_cast<uint64_t>(ticks[r]));
      Pipeline pipeline = region_of(8, "c.add", "", sink, ticks[r]);
      pipeline.clock(graph::ClockMode::free, 0, 1, 3);
      const DriverCalls counter;
      const Result result = run_or_die(std::move(pipeline), bench_setup());
      ours[r] = result.report.devices.at(0).driver_calls;
      all[r] = counter.counts();
      why_not = counter.why_not();
    }
    const int64_t more = ticks[1] - ticks[0];
    row("| 8 handlers, sink on the %s | %s | %s |", std::string(sink) == "c.end" ? "GPU" : "CPU",
        a_tick(ours[0], ours[1], more).c_str(),
        why_not.empty() ? a_tick(all[0], all[1], more).c_str() : why_not.c_str());
  }
}

struct Benchmark {
  const char* name;
  void (*run)();
  bool by_default;
};
// The one that loads libtorch comes after those that run in a process without it.
constexpr Benchmark kAll[] = {
    {"after", bench_after, true},     {"asleep", bench_asleep, true}, {"numbers", bench_numbers, true},
    {"slope", bench_slope, true},     {"copies", bench_copies, true}, {"calls", bench_calls, true},
    {"kernels", bench_kernels, true}, {"marks", bench_marks, true},   {"frame", bench_frame, true},
    {"links", bench_links, true},     {"five", bench_five, true},     {"crossover", bench_crossover, true},
    {"naive", bench_naive, true},     {"submit", bench_submit, true}, {"codebook", bench_codebook, true},
    {"volume", bench_volume, true},   {"peers", bench_peers, false}};

} // namespace
} // namespace millrace::test

int main(int count, char** arguments) {
  using namespace millrace::test;
  int failed = 0;
  for (const Benchmark& benchmark : kAll) {
    bool wanted = count == 1 && benchmark.by_default;
    for (int a = 1; a < count; ++a) wanted = wanted || std::string(benchmark.name).rfind(arguments[a], 0) == 0;
    if (!wanted) continue;
    try {
      benchmark.run();
    } catch (const std::exception& error) {
      row("\n%s did not end: %s", benchmark.name, error.what());
      failed = 1;
    }
  }
  return failed;
}
