// See deviations.h.
#include "plugins/codebook/deviations.h"

#include <cmath>

namespace millrace::codebook {

template <class Element>
std::vector<Float16> deviations(std::span<const Element> vectors, std::span<const Float16> anchors,
                                std::span<const uint32_t> labels, uint32_t dimensions) {
  std::vector<double> squares(anchors.size());
  std::vector<uint32_t> counts(anchors.size() / dimensions);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= counts.size()) continue;
    ++counts[labels[i]];
    const size_t row = size_t{labels[i]} * dimensions;
    for (uint32_t j = 0; j < dimensions; ++j) {
      const double apart = double{float{vectors[i * dimensions + j]}} - double{float{anchors[row + j]}};
      squares[row + j] += apart * apart;
    }
  }
  std::vector<Float16> made(anchors.size());
  for (size_t at = 0; at < made.size(); ++at) {
    const uint32_t count = counts[at / dimensions];
    made[at] = Float16(count > 0 ? static_cast<float>(std::sqrt(squares[at] / count)) : 0.0f);
  }
  return made;
}

template std::vector<Float16> deviations(std::span<const Float16>, std::span<const Float16>, std::span<const uint32_t>,
                                         uint32_t);
template std::vector<Float16> deviations(std::span<const BFloat16>, std::span<const Float16>, std::span<const uint32_t>,
                                         uint32_t);
template std::vector<Float16> deviations(std::span<const float>, std::span<const Float16>, std::span<const uint32_t>,
                                         uint32_t);

} // namespace millrace::codebook
