// Two-means over the members of one cell; see two_means.h.
#include "plugins/codebook/two_means.h"

#include "plugins/codebook/distance.h"

namespace millrace::codebook {

namespace {

constexpr uint32_t kRounds = 5;

Half half_at(const Points& points, uint32_t vector) {
  const float* const x = points.rows.row(vector);
  return {{x, x + points.rows.stride()}, {}};
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
    for (Half* half : {&halves.first, &halves.second})
      if (!half->cell.members.empty()) half->cell.mean(points, half->center);
  }
  round_to_halves(halves.first.center);
  round_to_halves(halves.second.center);
  return halves;
}

} // namespace millrace::codebook
