// Sums and means of cells; see cells.h. Sums are whole numbers, so a cell is summed again only if its members changed,
// and cells may be summed by any thread.
#include "plugins/codebook/cells.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "plugins/codebook/distance.h"
#include "plugins/codebook/vectorize.h"

namespace millrace::codebook {

namespace {

constexpr size_t kTrimmedOf = 10; // ⌊n / 10⌋ members are left out at each end

// Adds a row times a weight, each product rounded to a whole number.
CODEBOOK_VECTORIZE void add_row(const float* row, double weight, const Whole& values, std::vector<int64_t>& to) {
  int64_t* const sums = to.data();
  for (size_t j = 0, count = to.size(); j < count; ++j) sums[j] += values.of(double{row[j]} * weight);
}

void divide(const std::vector<int64_t>& sums, const Whole& values, double by, std::span<float> mean) {
  for (size_t j = 0; j < mean.size(); ++j) mean[j] = static_cast<float>(values.number(sums[j]) / by);
}

// No distance, squared, is above four times the greatest square of a vector or an anchor.
Whole energy_units(const Points& points, const Rows& anchors) {
  double largest = points.squares.largest();
  for (size_t a = 0; a < anchors.count(); ++a) largest = std::max(largest, square_of(anchors.row(a), anchors.stride()));
  return Whole::sums_to(5 * largest * static_cast<double>(points.count())); // a fifth of it for roundings
}

} // namespace

void Cell::add(const Points& points, uint32_t vector) {
  members.push_back(vector);
  count_in(points, vector);
}

void Cell::add(const Cell& other) {
  const auto own = static_cast<ptrdiff_t>(members.size());
  members.insert(members.end(), other.members.begin(), other.members.end());
  std::inplace_merge(members.begin(), members.begin() + own, members.end()); // members rise
  for (size_t j = 0; j < sums.size(); ++j) sums[j] += other.sums[j];
  square += other.square;
}

void Cell::sum_up(const Points& points) {
  sums.assign(points.rows.stride(), 0);
  square = 0;
  for (const uint32_t vector : members) count_in(points, vector);
}

void Cell::count_in(const Points& points, uint32_t vector) {
  add_row(points.rows.row(vector), 1, points.values, sums);
  square += points.square[vector];
}

void Cell::mean(const Points& points, std::span<float> mean) const {
  divide(sums, points.values, static_cast<double>(size()), mean);
}

double Cell::energy(const Points& points, const float* anchor) const {
  const size_t stride = points.rows.stride();
  const double product = product_of(anchor, sums.data(), points.values, stride);
  return (points.squares.number(square) - 2 * product) + static_cast<double>(size()) * square_of(anchor, stride);
}

void Cells::sort(std::span<const uint32_t> labels, size_t count, Crew& crew) {
  cells_.resize(count);
  before_.resize(count);
  for (size_t cell = 0; cell < count; ++cell) {
    before_[cell].swap(cells_[cell].members);
    cells_[cell].members.clear();
  }
  for (uint32_t vector = 0; vector < labels.size(); ++vector) cells_[labels[vector]].members.push_back(vector);
  crew.each(count, 1, [this](size_t at, size_t) {
    Cell& cell = cells_[at];
    if (cell.sums.empty() || cell.members != before_[at]) cell.sum_up(points_);
  });
}

void Cells::mean(size_t cell, Mean kind, std::span<const float> distances, float far, std::span<float> mean) const {
  if (kind == Mean::trimmed) return trimmed(cells_[cell], distances, mean);
  if (kind == Mean::huber) return huber(cells_[cell], distances, far, mean);
  cells_[cell].mean(points_, mean);
}

void Cells::trimmed(const Cell& cell, std::span<const float> distances, std::span<float> mean) const {
  const size_t left_out = cell.size() / kTrimmedOf;
  std::vector<int64_t> kept = cell.sums;
  if (left_out > 0) {
    // Distances have no sign, so their bits have their order; an index after them decides between equal ones.
    std::vector<uint64_t> order;
    order.reserve(cell.size());
    for (const uint32_t i : cell.members) order.push_back(uint64_t{std::bit_cast<uint32_t>(distances[i])} << 32 | i);
    const auto near_end = order.begin() + static_cast<ptrdiff_t>(left_out);
    const auto far_begin = order.end() - static_cast<ptrdiff_t>(left_out);
    std::nth_element(order.begin(), near_end, order.end());
    std::nth_element(near_end, far_begin, order.end());
    const auto take = [&](uint64_t member) {
      add_row(points_.rows.row(static_cast<uint32_t>(member)), -1, points_.values, kept);
    };
    std::for_each(order.begin(), near_end, take);
    std::for_each(far_begin, order.end(), take);
  }
  divide(kept, points_.values, static_cast<double>(cell.size() - 2 * left_out), mean);
}

void Cells::huber(const Cell& cell, std::span<const float> distances, float far, std::span<float> mean) const {
  const Whole weights = Whole::below(1);
  std::vector<int64_t> sums(points_.rows.stride());
  int64_t weight_sum = 0;
  for (const uint32_t i : cell.members) {
    const float at = std::sqrt(distances[i]);
    const float weight = at <= far ? 1.0f : far / at;
    add_row(points_.rows.row(i), double{weight}, points_.weighed, sums);
    weight_sum += weights.of(double{weight});
  }
  if (weight_sum > 0) divide(sums, points_.weighed, weights.number(weight_sum), mean);
}

double Cells::energy(const Rows& anchors) const {
  const Whole units = energy_units(points_, anchors);
  int64_t sum = 0;
  for (size_t cell = 0; cell < count(); ++cell)
    if (!cells_[cell].members.empty()) sum += units.of(cells_[cell].energy(points_, anchors.row(cell)));
  return units.number(sum) / static_cast<double>(points_.count());
}

} // namespace millrace::codebook
