// A short form of `millrace bench batch`: 3 s of virtual time a cell. It fails where a goal is missed.
// MILLRACE_SEED=n draws other arrivals and times.
#include <doctest/doctest.h>

#include "bench/batch_table.h"
#include "tests/milliseconds.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::bench {
namespace {

TEST_CASE("the controller keeps its goals beside the rules of others, in all cells") {
  std::vector<BatchCell> cells = batch_cells();
  for (size_t c = 0; c < cells.size(); ++c)
    if (test::is_tried(static_cast<int64_t>(c))) simulate_cell(cells[c], 3000 * kMs, random_seed());
  for (const BatchGoal& goal : batch_goals(cells)) {
    INFO(goal.words);
    for (const std::string& where : goal.missed) FAIL_CHECK(where);
    if (test::percent_tried() == 100) CHECK(goal.cells >= 18);
  }
}

} // namespace
} // namespace millrace::bench
