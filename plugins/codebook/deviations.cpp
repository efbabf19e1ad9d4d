// See deviations.h.
#include "plugins/codebook/deviations.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/codebook/points.h"

namespace millrace::codebook {

void find_deviations(const Rows& rows, const Rows& anchors, std::span<const uint32_t> labels, std::span<Float16> made) {
  const size_t dimensions = anchors.dimensions();
  std::vector<double> squares(made.size());
  std::vector<uint32_t> counts(anchors.count());
  for (size_t i = 0; i < labels.size(); ++i) {
    const float *const x = rows.row(i), *const a = anchors.row(labels[i]);
    double* const sums = squares.data() + labels[i] * dimensions;
    ++counts[labels[i]];
    for (size_t j = 0; j < dimensions; ++j) {
      const double apart = double{x[j]} - double{a[j]};
      sums[j] += apart * apart;
    }
  }
  for (size_t at = 0; at < made.size(); ++at) {
    const uint32_t count = counts[at / dimensions];
    const double deviation = count > 0 ? std::sqrt(squares[at] / count) : 0;
    made[at] = Float16(static_cast<float>(std::min(deviation, double{kAnchorMax})));
  }
}

} // namespace millrace::codebook
