// The assignment problem against all permutations, and the shapes at its edges.
#include "plugins/opencv/assignment.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include "tests/seed.h"

namespace {

using millrace::opencv::assign_least_cost;

// The least total cost by trying every way; rows <= columns.
double least_cost_of_all(const std::vector<double>& cost, uint32_t rows, uint32_t columns) {
  std::vector<uint32_t> order(columns);
  std::iota(order.begin(), order.end(), 0u);
  double least = std::numeric_limits<double>::infinity();
  do {
    double total = 0;
    for (uint32_t row = 0; row < rows; ++row) total += cost[row * columns + order[row]];
    least = std::min(least, total);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

std::vector<double> transposed(const std::vector<double>& cost, uint32_t rows, uint32_t columns) {
  std::vector<double> result(cost.size());
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t column = 0; column < columns; ++column) result[column * rows + row] = cost[row * columns + column];
  return result;
}

// The total of the pairs; fails where a column is taken twice or fewer pairs are made than possible.
double checked_total(const std::vector<double>& cost, uint32_t rows, uint32_t columns) {
  const std::vector<int32_t> column_of = assign_least_cost(cost, rows, columns);
  REQUIRE(column_of.size() == rows);
  std::vector<char> taken(columns, 0);
  uint32_t pairs = 0;
  double total = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    if (column_of[row] < 0) continue;
    const auto column = static_cast<uint32_t>(column_of[row]);
    REQUIRE(column < columns);
    REQUIRE(!taken[column]);
    taken[column] = 1;
    ++pairs;
    total += cost[row * columns + column];
  }
  CHECK(pairs == std::min(rows, columns));
  return total;
}

} // namespace

TEST_CASE("an assignment costs as little as the best of all permutations, on matrices of up to 7 × 7") {
  const uint32_t seed = millrace::random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  for (uint32_t rows = 1; rows <= 7; ++rows)
    for (uint32_t columns = rows; columns <= 7; ++columns)
      for (int trial = 0; trial < 8; ++trial) {
        // Whole numbers of a small range, half of the time: many equal costs are the hard case.
        std::vector<double> cost(size_t{rows} * columns);
        std::uniform_int_distribution<int> whole(-3, 3);
        std::uniform_real_distribution<double> real(-10, 10);
        for (double& c : cost) c = trial % 2 ? whole(random) : real(random);
        INFO(rows, " × ", columns, ", trial ", trial);
        const double least = least_cost_of_all(cost, rows, columns);
        CHECK(checked_total(cost, rows, columns) == doctest::Approx(least).epsilon(1e-9));
        CHECK(checked_total(transposed(cost, rows, columns), columns, rows) == doctest::Approx(least).epsilon(1e-9));
      }
}

TEST_CASE("an assignment gives up the nearest pair where the total is less without it") {
  // Greedy would take (0, 0) for 1 and be left with 100.
  CHECK(assign_least_cost(std::vector<double>{1, 2, 2, 100}, 2, 2) == std::vector<int32_t>{1, 0});
}

TEST_CASE("an assignment of nobody or to nothing is empty") {
  CHECK(assign_least_cost({}, 0, 5).empty());
  CHECK(assign_least_cost({}, 3, 0) == std::vector<int32_t>{-1, -1, -1});
}

TEST_CASE("an assignment refuses a matrix of another size than it was told") {
  CHECK_THROWS_AS(assign_least_cost(std::vector<double>{1, 2, 3}, 2, 2), std::invalid_argument);
}

TEST_CASE("an assignment of 256 to 256, the most that a tracker asks for, is a permutation") {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> real(0, 1);
  std::vector<double> cost(256 * 256);
  for (double& c : cost) c = real(random);
  // The expected least total tends to pi² / 6 (D. Aldous, 2001), whatever the size.
  const double total = checked_total(cost, 256, 256);
  CHECK(total > 1.2);
  CHECK(total < 2.1);
}
