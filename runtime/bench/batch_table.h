// The table of `millrace bench batch`: every rule in every cell of arrivals, budget and load, and the goals that ours
// is held to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batch/sim/simulate.h"

namespace millrace::bench {

struct BatchCell {
  batch::Pattern pattern;
  int64_t budget_ms;
  int load_percent;                     // per cent of the device's capacity
  std::vector<batch::Outcome> outcomes; // by rule; empty if the cell was left out
};

struct BatchGoal {
  std::string words;
  uint32_t cells = 0; // for which it holds or not
  std::vector<std::string> missed;
};

// The names of the rules; ours is the last.
std::vector<std::string> batch_rules();
// All cells, in an order of their own.
std::vector<BatchCell> batch_cells();
// Runs a cell for so much virtual time, 2 s at least; the first and the last of it are not measured. The same seed
// gives the same outcomes.
void simulate_cell(BatchCell& cell, int64_t duration_ns, uint64_t seed);
// The goals, over the cells that were run.
std::vector<BatchGoal> batch_goals(const std::vector<BatchCell>& cells);

} // namespace millrace::bench
