// `millrace bench batch`: rules for batches beside each other, simulated. In virtual time and from one seed, so the
// figures are the same on every machine.
//
// 64 streams give items to one device by four patterns (batch/sim/arrivals.h), at 10 to 120 % of what the device can do
// (8,300 items/s), with budgets of 15, 50 and 100 ms. Every rule drives the runtime's own collector; the device and
// what it does with two firings at a time is in batch/sim/device.h. A stream that has used its allowance loses the
// items that it would give (`realtime`), and those are late like items that are dropped.
//
// The tables have for each load p99 in ms of the items that were done, from give to the end of their firing; the part
// of the time in which the device works; and, where that is below 0.995, the part of all items that were done in time.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "bench/batch_table.h"
#include "bench/measure.h"

namespace millrace::bench {

namespace {

constexpr int64_t kSimulatedNs = 6'000'000'000;
constexpr uint64_t kBatchSeed = 1;

void simulate_all(std::vector<BatchCell>& cells) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t c = next++; c < cells.size(); c = next++) simulate_cell(cells[c], kSimulatedNs, kBatchSeed);
  };
  std::vector<std::thread> others(std::min(std::thread::hardware_concurrency(), 8u));
  for (std::thread& thread : others) thread = std::thread(work);
  work();
  for (std::thread& thread : others) thread.join();
}

void print_tables(const std::vector<BatchCell>& cells, const std::vector<std::string>& rules) {
  for (size_t from = 0; from < cells.size();) {
    const size_t to = static_cast<size_t>(std::find_if(cells.begin() + static_cast<std::ptrdiff_t>(from), cells.end(),
                                                       [&](const BatchCell& cell) {
                                                         return cell.pattern != cells[from].pattern ||
                                                                cell.budget_ms != cells[from].budget_ms;
                                                       }) -
                                          cells.begin());
    std::printf("\n%s, budget %ld ms: p99 ms/device use\n%-27s", batch::name_of(cells[from].pattern),
                static_cast<long>(cells[from].budget_ms), "load");
    for (size_t c = from; c < to; ++c) std::printf(" %8d %%     ", cells[c].load_percent);
    std::printf("\n");
    for (size_t r = 0; r < rules.size(); ++r) {
      std::printf("%-27s", rules[r].c_str());
      for (size_t c = from; c < to; ++c) {
        const batch::Outcome& outcome = cells[c].outcomes[r];
        std::printf(" %5.1f/%.2f", outcome.p99_ms, outcome.device_use);
        if (outcome.in_time_share() < 0.995)
          std::printf(" %.2f", outcome.in_time_share());
        else
          std::printf("     ");
      }
      std::printf("\n");
    }
    from = to;
  }
}

void print_goals(const std::vector<BatchGoal>& goals) {
  std::printf("\n");
  for (const BatchGoal& goal : goals) {
    std::printf("%s: %s in %zu of %u cells\n", goal.missed.empty() ? "met" : "missed", goal.words.c_str(),
                goal.cells - goal.missed.size(), goal.cells);
    for (const std::string& where : goal.missed) std::printf("  not in %s\n", where.c_str());
  }
}

} // namespace

std::vector<Row> bench_batch() {
  const std::vector<std::string> rules = batch_rules();
  std::vector<BatchCell> cells = batch_cells();
  simulate_all(cells);
  const std::vector<BatchGoal> goals = batch_goals(cells);
  print_tables(cells, rules);
  print_goals(goals);
  std::vector<Row> rows;
  for (const BatchCell& cell : cells) {
    for (size_t r = 0; r < rules.size(); ++r) {
      const batch::Outcome& outcome = cell.outcomes[r];
      const std::string variant = std::string(batch::name_of(cell.pattern)) + ", " + std::to_string(cell.budget_ms) +
                                  " ms, " + std::to_string(cell.load_percent) + " %, " + rules[r];
      const auto add_row = [&](const char* metric, const char* unit, double p50, double p99, uint64_t n) {
        rows.push_back({"batch", variant, metric, unit, p50, p99, n, false});
      };
      const double share = outcome.in_time_share();
      add_row("wait", "ms", outcome.p50_ms, outcome.p99_ms, outcome.done);
      add_row("device_use", "", outcome.device_use, outcome.device_use, outcome.firings);
      add_row("in_time", "", share, share, outcome.came);
    }
  }
  for (const BatchGoal& goal : goals) {
    const auto missed = static_cast<double>(goal.missed.size());
    rows.push_back({"batch", goal.words, "missed_cells", "cells", missed, missed, goal.cells, false});
  }
  return rows;
}

} // namespace millrace::bench
