// Splits the members of a cell in two.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/codebook/cells.h"
#include "plugins/codebook/points.h"

namespace millrace::codebook {

struct Half {
  std::vector<float> center; // a row of whole lanes, in half precision
  Cell cell;
};
struct Halves {
  Half first, second;
};

// Five rounds of two-means, which begin with the first and the last member. A member as far from both centers belongs
// to the second. The members are those of the last round, and the centers the means of them; a half without members
// keeps its center.
Halves two_means(const Points& points, std::span<const uint32_t> members);

} // namespace millrace::codebook
