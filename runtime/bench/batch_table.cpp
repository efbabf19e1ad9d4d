// Makes the table of `millrace bench batch`: its rules, its cells and its goals; see batch_table.h.
#include "bench/batch_table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "batch/controller.h"
#include "batch/plain_rules.h"
#include "bench/batch_rivals.h"

namespace millrace::bench {

namespace {

using batch::Outcome;
using batch::Pattern;
using batch::Scenario;

using MadeRule = std::unique_ptr<batch::Rule>;
constexpr int64_t kMs = 1'000'000;

MadeRule ours(const Scenario& scenario) {
  batch::Budget budget;
  budget.budget_ns = scenario.budget_ns;
  return std::make_unique<batch::Controller>(budget, scenario.rate,
                                             std::llround(scenario.streams * 1e9 / scenario.rate));
}
template <uint32_t size, int64_t wait_ns>
MadeRule fixed(const Scenario&) {
  return std::make_unique<batch::FixedRule>(size, wait_ns);
}

enum RuleIndex : size_t {
  kOneByOne,
  kFixed,
  kTimeout,
  kLongTimeout,
  kAimd,
  kGreedy,
  kDrops,
  kDropsPaired,
  kAlone,
  kOurs
};
struct RuleCase {
  const char* name;
  uint32_t in_flight;
  MadeRule (*make)(const Scenario&);
};
constexpr RuleCase kRules[] = {
    {"one by one", 1, &fixed<1, 0>},
    {"fixed 16", 1, &fixed<16, batch::kNever>},
    {"16 or 5 ms", 1, &fixed<16, 5 * kMs>},
    {"64 or 20 ms", 1, &fixed<64, 20 * kMs>},
    {"AIMD", 1, [](const Scenario&) -> MadeRule { return std::make_unique<Aimd>(); }},
    {"greedy", 1, [](const Scenario&) -> MadeRule { return std::make_unique<batch::FreeRule>(64); }},
    {"greedy, drops", 1, [](const Scenario&) -> MadeRule { return std::make_unique<GreedyThatDrops>(); }},
    {"greedy, drops, 2 in flight", 2, [](const Scenario&) -> MadeRule { return std::make_unique<GreedyThatDrops>(); }},
    {"ours, 1 in flight", 1, &ours},
    {"ours", 2, &ours},
};
static_assert(std::size(kRules) == kOurs + 1);

bool is_spread(const BatchCell& cell) { return cell.pattern == Pattern::any_phase || cell.pattern == Pattern::poisson; }

std::string name_of(const BatchCell& cell) {
  return std::string(batch::name_of(cell.pattern)) + ", " + std::to_string(cell.budget_ms) + " ms, " +
         std::to_string(cell.load_percent) + " %";
}

} // namespace

std::vector<std::string> batch_rules() {
  std::vector<std::string> names;
  for (const RuleCase& rule : kRules) names.emplace_back(rule.name);
  return names;
}

std::vector<BatchCell> batch_cells() {
  std::vector<BatchCell> cells;
  for (const Pattern pattern : batch::kPatterns)
    for (const int64_t budget_ms : {15, 50, 100})
      for (const int load : {10, 30, 50, 70, 80, 90, 100, 120}) cells.push_back({pattern, budget_ms, load, {}});
  return cells;
}

void simulate_cell(BatchCell& cell, int64_t duration_ns, uint64_t seed) {
  const std::vector<batch::BucketTime> device = batch::device_curve();
  for (const RuleCase& rule : kRules) {
    Scenario scenario;
    scenario.pattern = cell.pattern;
    scenario.rate = batch::capacity(device) * cell.load_percent / 100;
    scenario.budget_ns = cell.budget_ms * kMs;
    scenario.duration_ns = duration_ns;
    scenario.measured_from_ns = 500 * kMs;
    scenario.measured_to_ns = duration_ns - 200 * kMs;
    scenario.in_flight = rule.in_flight;
    scenario.seed = seed;
    const MadeRule made = rule.make(scenario);
    cell.outcomes.push_back(batch::simulate(scenario, device, *made));
  }
}

std::vector<BatchGoal> batch_goals(const std::vector<BatchCell>& cells) {
  BatchGoal p99{"p99 within the budget", 0, {}};
  BatchGoal share{"in time: at least 0.98 of the best rule's share", 0, {}};
  BatchGoal greedy{"periodic and Poisson, 30 to 70 %: device use at most 0.9 of the thriftiest greedy rule's", 0, {}};
  BatchGoal waits{"periodic and Poisson, 10 to 50 %: p99 at most half of fixed 16's and of 16 or 5 ms", 0, {}};
  BatchGoal alone{"periodic and Poisson, 10 to 50 %: device use at most that of one by one", 0, {}};
  for (const BatchCell& cell : cells) {
    if (cell.outcomes.empty()) continue;
    const std::vector<Outcome>& by = cell.outcomes;
    const Outcome& mine = by[kOurs];
    const auto hold = [&](BatchGoal& goal, double figure, double most) {
      ++goal.cells;
      if (!(figure <= most))
        goal.missed.push_back(name_of(cell) + ": " + std::to_string(figure) + " of " + std::to_string(most));
    };
    double best = 0;
    for (const Outcome& outcome : by) best = std::max(best, outcome.in_time_share());
    hold(p99, mine.p99_ms, static_cast<double>(cell.budget_ms));
    hold(share, 0.98 * best, mine.in_time_share());
    if (!is_spread(cell)) continue;
    const double least = std::min({by[kGreedy].device_use, by[kDrops].device_use, by[kDropsPaired].device_use});
    if (cell.load_percent >= 30 && cell.load_percent <= 70) hold(greedy, mine.device_use, 0.9 * least);
    if (cell.load_percent > 50) continue;
    hold(waits, mine.p99_ms, 0.5 * std::min(by[kFixed].p99_ms, by[kTimeout].p99_ms));
    hold(alone, mine.device_use, by[kOneByOne].device_use);
  }
  return {p99, share, greedy, waits, alone};
}

} // namespace millrace::bench
