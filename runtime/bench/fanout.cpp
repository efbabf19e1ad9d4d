// `millrace bench fanout`: the cost of one output that many handlers read.
//
// null.source → null.sink × N on one thread under `free`: all sinks read the same bytes, and nothing is copied. `tick`
// is a run's wall time over its ticks, accounting included; `reader` is the slope from 1 to 64 readers.
#include "bench/measure.h"
#include "observe/report.h"

namespace millrace::bench {

namespace {

graph::Graph star(uint32_t readers) {
  graph::Graph graph;
  add(graph, "source", "null.source", "");
  for (uint32_t i = 0; i < readers; ++i) add(graph, "sink" + std::to_string(i), "null.sink", "source");
  return graph;
}

} // namespace

std::vector<Row> bench_fanout() {
  constexpr uint32_t kReaders[] = {1, 4, 16, 64};
  constexpr size_t kCases = std::size(kReaders);
  constexpr int kRuns = 15;
  constexpr uint64_t kReads = 3'000'000; // reads in one run, so that all cases take about as long
  std::vector<double> per_tick[kCases], slopes;
  for (int r = 0; r < kRuns; ++r) {
    for (size_t c = 0; c < kCases; ++c) {
      const uint64_t ticks = kReads / (kReaders[c] + 1);
      per_tick[c].push_back(run_graph(star(kReaders[c]), 1, ticks).duration_s * 1e9 / static_cast<double>(ticks));
    }
    slopes.push_back((per_tick[kCases - 1].back() - per_tick[0].back()) / (kReaders[kCases - 1] - kReaders[0]));
  }
  std::vector<Row> rows;
  for (size_t c = 0; c < kCases; ++c)
    rows.push_back(row_of("fanout", std::to_string(kReaders[c]), "tick", "ns", per_tick[c]));
  rows.push_back(row_of("fanout", "1..64", "reader", "ns", slopes));
  return rows;
}

} // namespace millrace::bench
