// See deviations.h.
#include "plugins/codebook/deviations.h"

#include <cmath>
#include <vector>

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
    made[at] = Float16(count > 0 ? static_cast<float>(std::sqrt(squares[at] / count)) : 0.0f);
  }
}

} // namespace millrace::codebook
