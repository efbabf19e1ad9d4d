// Two-means over the members of one cell; see two_means.h.
#include "plugins/codebook/two_means.h"

#include <algorithm>

#include "plugins/codebook/distance.h"

namespace millrace::codebook {

namespace {

constexpr uint32_t kRounds = 5;

Half half_at(const Points& points, uint32_t vector) {
  const float* const x = points.rows.row(vector);
  return {{x, x + points.rows.stride()}, {}};
}

// To the mean, in single precision.
void move_center(const Points& points, Half& half) {
  if (half.cell.members.empty()) return;
  for (size_t j = 0; j < half.center.size(); ++j)
    half.center[j] =
        static_cast<float>(points.values.number(half.cell.sums[j]) / static_cast<double>(half.cell.size()));
}

} // namespace

Halves two_means(const Points& points, std::span<const uint32_t> members) {
  const size_t stride = points.rows.stride();
  Halves halves{half_at(points, members.front()), half_at(points, members.back())};
  for (uint32_t round = 0; round < kRounds; ++round) {
    halves.first.cell = halves.second.cell = Cell(stride);
    for (const uint32_t i : members) {
      const float* const x = points.rows.row(i);
      const bool is_first =
          distance(x, halves.first.center.data(), stride) < distance(x, halves.second.center.data(), stride);
      (is_first ? halves.first : halves.second).cell.add(points, i);
    }
    move_center(points, halves.first);
    move_center(points, halves.second);
  }
  for (Half* half : {&halves.first, &halves.second})
    for (float& number : half->center) number = Float16(number);
  return halves;
}

} // namespace millrace::codebook
