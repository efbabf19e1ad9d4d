// Who belongs to whom at the least total cost: the assignment problem.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace::opencv {

// `cost` is a row-major matrix of rows × columns finite numbers. Returns the column of each row, -1 where there are
// more rows than columns; min(rows, columns) pairs of least total cost. Among equals the choice is fixed by the order
// of rows and columns. O(n²·m) for n = min(rows, columns), m = max: shortest augmenting paths with potentials (R.
// Jonker, A. Volgenant: "A shortest augmenting path algorithm for dense and sparse linear assignment problems",
// Computing 38, 1987), without their initialisation, which pays off only for matrices far larger than ours.
std::vector<int32_t> assign_least_cost(std::span<const double> cost, uint32_t rows, uint32_t columns);

} // namespace millrace::opencv
