// `millrace bench counters`: the time that a client's thread takes to ask a run what it has counted.
//
// The run is null.source → flow.pass × … → null.sink and goes on as fast as it can. `fill` is Counters::fill(). `array`
// copies as many numbers as that gives, out of an array of numbers that other threads may write. `ratio` is the one
// divided by the other, taken in turns.
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "bench/measure.h"
#include "exec/counters.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "observe/report.h"
#include "observe/single_writer.h"

namespace millrace::bench {

namespace {

constexpr int kFills = 400;
constexpr std::chrono::milliseconds kWarmFor{250};

// The numbers that a call of fill() gives.
size_t numbers_in(const exec::Counters& counters) {
  size_t numbers = counters.edges.size() * (std::tuple_size_v<exec::Drops> + 5);
  for (const exec::HandlerCounters& one : counters.handlers) numbers += 2 + one.times.numbers();
  for (const exec::ClockCounters& one : counters.clocks)
    numbers += std::tuple_size_v<exec::Drops> + 4 + one.latencies.numbers();
  for (const exec::SinkCounters& one : counters.sinks) numbers += 2 + one.latencies.numbers();
  return numbers;
}

} // namespace

std::vector<Row> bench_counters() {
  std::vector<Row> rows;
  for (const uint32_t handlers : {10u, 100u, 1'000u}) {
    std::vector<double> fill_us, array_us, ratios;
    const auto us_of = [](const auto& act) {
      const int64_t begin = monotonic_ns();
      act();
      return static_cast<double>(monotonic_ns() - begin) / 1000;
    };
    run_graph(chain(handlers), 1, {}, nullptr, [&](exec::Run& run) {
      std::this_thread::sleep_for(kWarmFor);
      const std::unique_ptr<exec::Counters> counters = run.counters();
      counters->fill();
      const std::vector<SingleWriter<uint64_t>> from(numbers_in(*counters));
      std::vector<uint64_t> to(from.size());
      for (int n = 0; n < kFills; ++n) {
        fill_us.push_back(us_of([&] { counters->fill(); }));
        array_us.push_back(us_of([&] { std::copy(from.begin(), from.end(), to.begin()); }));
        ratios.push_back(fill_us.back() / array_us.back());
      }
    });
    const std::string variant = std::to_string(handlers) + " handlers";
    rows.push_back(row_of("counters", variant, "fill", "us", fill_us));
    rows.push_back(row_of("counters", variant, "array", "us", array_us));
    rows.push_back(row_of("counters", variant, "ratio", "", ratios));
  }
  return rows;
}

} // namespace millrace::bench
