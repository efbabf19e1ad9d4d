// Solves the assignment problem: pairs rows with columns at the least total cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace::opencv {

// `cost` is a row-major matrix of rows × columns finite numbers. Returns the column of each row; -1 for rows that get
// none because there are more rows than columns. The min(rows, columns) pairs have the least total cost. The order of
// rows and columns decides among equal solutions. O(n²·m) for n = min(rows, columns), m = max: shortest augmenting
// paths with potentials (R. Jonker, A. Volgenant: "A shortest augmenting path algorithm for dense and sparse linear
// assignment problems", Computing 38, 1987), without their initialisation, which pays off only for matrices far larger
// than ours.
std::vector<int32_t> assign_least_cost(std::span<const double> cost, uint32_t rows, uint32_t columns);

} // namespace millrace::opencv
