// The vectors of one fit: as rows of single precision, and as whole numbers for sums.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "millrace/payload/half_floats.h"
#include "plugins/codebook/lanes.h"
#include "plugins/codebook/whole.h"

namespace millrace::codebook {

inline constexpr float kAnchorMax = 65504; // the greatest number of half precision, which anchors have

enum class Metric { l2, cosine };
enum class BadRows { refuse, skip };

struct Points {
  size_t count() const { return rows.count(); }
  uint32_t dimensions() const { return rows.dimensions(); }

  Rows rows;
  Whole values = Whole::of_halves();  // for sums of elements
  Whole weighed = Whole::of_halves(); // for sums of elements times weights, which are at most 1
  Whole squares = Whole::of_halves(); // for sums of |x|²
  std::vector<int64_t> square;        // |x|² of each row, in units of `squares`
  // Rows of the input that were left out because of `skip`, in order.
  std::vector<uint32_t> skipped;
};

// Reasons why a row cannot be used, or why there is no fit.
enum class Fault : uint32_t { none, not_finite, too_large, no_direction, too_few };

// Thrown for numbers that no fit can use. The sentence names row and column.
struct BadVectors : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
// `number`: the first that cannot be used, in this column.
BadVectors bad_vectors(Fault fault, uint64_t row, uint64_t column, float number);

// `elements`: [count, dimensions], row by row. With cosine, each row is divided by its norm, in double precision, and
// rounded once. Throws BadVectors if a number is NaN, infinite or too large for an anchor, or, with cosine, if a row is
// all zeros; with `skip` such rows are left out.
Points make_points(std::span<const Float16> elements, uint32_t dimensions, Metric metric, BadRows bad);
Points make_points(std::span<const BFloat16> elements, uint32_t dimensions, Metric metric, BadRows bad);
Points make_points(std::span<const float> elements, uint32_t dimensions, Metric metric, BadRows bad);

// Rounds each number to half precision, as anchors are.
inline void round_to_halves(std::span<float> numbers) {
  for (float& number : numbers) number = Float16(number);
}

} // namespace millrace::codebook
