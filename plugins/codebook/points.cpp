// Reads vectors into rows; see points.h.
#include "plugins/codebook/points.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <type_traits>

#include "plugins/codebook/distance.h"
#include "plugins/codebook/number_text.h"
#include "plugins/codebook/vectorize.h"

namespace millrace::codebook {

namespace {

// Copies a row as single precision and gives the greatest magnitude in it, as bits, whose order is that of magnitudes;
// those of infinities and NaN are the greatest.
template <class Element>
[[gnu::always_inline]] inline uint32_t copy_row(const Element* from, uint32_t count, float* to) {
  uint32_t largest = 0;
  for (uint32_t j = 0; j < count; ++j) {
    const float number = from[j];
    to[j] = number;
    largest = std::max(largest, std::bit_cast<uint32_t>(number) & 0x7fffffffu);
  }
  return largest;
}
CODEBOOK_VECTORIZE uint32_t read_row(const Float16* from, uint32_t count, float* to) {
  return copy_row(from, count, to);
}
CODEBOOK_VECTORIZE uint32_t read_row(const BFloat16* from, uint32_t count, float* to) {
  return copy_row(from, count, to);
}
CODEBOOK_VECTORIZE uint32_t read_row(const float* from, uint32_t count, float* to) { return copy_row(from, count, to); }

float largest_of(std::span<const float> row) {
  float largest = 0;
  for (const float number : row) largest = std::max(largest, std::abs(number));
  return largest;
}

Fault fault_of(float largest, double square, Metric metric) {
  if (!std::isfinite(largest)) return Fault::not_finite;
  if (metric == Metric::cosine) return square > 0 ? Fault::none : Fault::no_direction;
  return largest > kAnchorMax ? Fault::too_large : Fault::none;
}

// Names the first number that is at fault, if one is.
BadVectors bad_row(Fault fault, size_t row, std::span<const float> numbers) {
  const auto is_good = [](float number) { return std::abs(number) <= kAnchorMax; }; // false for NaN
  const auto bad = std::ranges::find_if_not(
      numbers, fault == Fault::too_large ? is_good : [](float number) { return std::isfinite(number); });
  return bad_vectors(fault, row, static_cast<uint64_t>(bad - numbers.begin()), bad == numbers.end() ? 0 : *bad);
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
    float largest_here =
        std::bit_cast<float>(read_row(elements.data() + i * dimensions, dimensions, row.data())); // may be no number
    double square = square_of(row.data(), points.rows.stride());
    if (const Fault fault = fault_of(largest_here, square, metric); fault != Fault::none) {
      if (bad == BadRows::refuse) throw bad_row(fault, i, row);
      points.skipped.push_back(static_cast<uint32_t>(i));
      continue;
    }
    if (metric == Metric::cosine) {
      const double norm = std::sqrt(square);
      for (float& number : row) number = static_cast<float>(double{number} / norm);
      square = square_of(row.data(), points.rows.stride());
      largest_here = largest_of(row);
    }
    largest = std::max(largest, double{largest_here});
    largest_square = std::max(largest_square, square);
    squares[used++] = square;
  }
  points.rows.resize(used);
  points.weighed = Whole::below(largest);
  if (!std::is_same_v<Element, Float16> || metric == Metric::cosine) points.values = points.weighed;
  points.squares = Whole::below(2 * largest_square); // a square of all bits of a double may be rounded up
  points.square.resize(used);
  for (size_t i = 0; i < used; ++i) points.square[i] = points.squares.of(squares[i]);
  return points;
}

} // namespace

BadVectors bad_vectors(Fault fault, uint64_t row, uint64_t column, float number) {
  const std::string vector = "the vector of row " + std::to_string(row), skip = "bad=skip leaves out such rows";
  if (fault == Fault::no_direction)
    return BadVectors(vector + " is all zeros and has no direction, which metric=cosine needs; " + skip);
  const std::string place = " in column " + std::to_string(column);
  if (fault == Fault::too_large)
    return BadVectors(vector + " has " + number_text(double{number}) + place +
                      ", and anchors are of half precision, up to 65504; scale the vectors, or " + skip);
  return BadVectors(vector + " has " + (std::isnan(number) ? "NaN" : "an infinity") + place + "; " + skip);
}

Points make_points(std::span<const Float16> elements, uint32_t dimensions, Metric metric, BadRows bad) {
  return read(elements, dimensions, metric, bad);
}
Points make_points(std::span<const BFloat16> elements, uint32_t dimensions, Metric metric, BadRows bad) {
  return read(elements, dimensions, metric, bad);
}
Points make_points(std::span<const float> elements, uint32_t dimensions, Metric metric, BadRows bad) {
  return read(elements, dimensions, metric, bad);
}

} // namespace millrace::codebook
