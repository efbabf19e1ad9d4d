// Reads vectors into rows; see points.h.
#include "plugins/codebook/points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "plugins/codebook/vectorize.h"

namespace millrace::codebook {

namespace {

double sum_of(const double (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
uint32_t first_not_finite(std::span<const float> row) {
  const auto at = std::find_if_not(row.begin(), row.end(), [](float number) { return std::isfinite(number); });
  return at == row.end() ? kNone : static_cast<uint32_t>(at - row.begin());
}

BadVectors not_finite(size_t row, uint32_t column, float number) {
  return BadVectors("the vector of row " + std::to_string(row) + " has " +
                    (std::isnan(number) ? "NaN" : "an infinity") + " in column " + std::to_string(column) +
                    "; bad=skip leaves out such rows");
}

BadVectors no_direction(size_t row) {
  return BadVectors("the vector of row " + std::to_string(row) +
                    " is all zeros and has no direction, which metric=cosine needs; bad=skip leaves out such rows");
}

template <class Element>
Points read(std::span<const Element> elements, uint32_t dimensions, Metric metric, BadRows bad) {
  const size_t count = elements.size() / dimensions;
  Points points;
  points.rows = Rows(count, dimensions);
  size_t used = 0;
  double largest = 0, largest_square = 0;
  std::vector<double> squares(count);
  for (size_t i = 0; i < count; ++i) {
    const std::span<float> row = points.rows.numbers(used);
    std::copy_n(elements.data() + i * dimensions, dimensions, row.begin());
    const uint32_t column = first_not_finite(row);
    double square = column == kNone ? square_of(row.data(), points.rows.stride()) : 0;
    const bool has_no_direction = metric == Metric::cosine && !(square > 0);
    if (column != kNone || has_no_direction) {
      if (bad == BadRows::refuse) throw column != kNone ? not_finite(i, column, row[column]) : no_direction(i);
      points.skipped.push_back(static_cast<uint32_t>(i));
      continue;
    }
    if (metric == Metric::cosine) {
      const double norm = std::sqrt(square);
      for (float& number : row) number = static_cast<float>(double{number} / norm);
      square = square_of(row.data(), points.rows.stride());
    }
    for (const float number : row) largest = std::max(largest, std::abs(double{number}));
    largest_square = std::max(largest_square, square);
    squares[used++] = square;
  }
  points.rows.resize(used);
  if (!std::is_same_v<Element, Float16> || metric == Metric::cosine) points.values = Whole::below(largest);
  points.squares = Whole::below(largest_square);
  points.square.resize(used);
  for (size_t i = 0; i < used; ++i) points.square[i] = points.squares.of(squares[i]);
  return points;
}

} // namespace

Points make_points(std::span<const Float16> elements, uint32_t dimensions, Metric metric, BadRows bad) {
  return read(elements, dimensions, metric, bad);
}
Points make_points(std::span<const BFloat16> elements, uint32_t dimensions, Metric metric, BadRows bad) {
  return read(elements, dimensions, metric, bad);
}
Points make_points(std::span<const float> elements, uint32_t dimensions, Metric metric, BadRows bad) {
  return read(elements, dimensions, metric, bad);
}

CODEBOOK_VECTORIZE double square_of(const float* x, size_t stride) {
  double lanes[kLanes] = {};
  for (size_t j = 0; j < stride; j += kLanes)
    for (uint32_t lane = 0; lane < kLanes; ++lane) lanes[lane] += double{x[j + lane]} * double{x[j + lane]};
  return sum_of(lanes);
}

CODEBOOK_VECTORIZE double product_of(const float* a, const int64_t* sums, const Whole& values, size_t stride) {
  double lanes[kLanes] = {};
  for (size_t j = 0; j < stride; j += kLanes)
    for (uint32_t lane = 0; lane < kLanes; ++lane) lanes[lane] += double{a[j + lane]} * values.number(sums[j + lane]);
  return sum_of(lanes);
}

} // namespace millrace::codebook
