// Sums over rows: squared distances, squares and products, and the nearest of several rows. See lanes.h for the order
// of the sums.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/codebook/lanes.h"
#include "plugins/codebook/whole.h"

namespace millrace::codebook {

// Σ (x − a)² over `stride` numbers, which are whole lanes, in single precision.
float distance(const float* x, const float* a, size_t stride);

// Σ x² in double precision, in the same order.
double square_of(const float* x, size_t stride);
// Σ a · s in double precision, in the same order. `sums` has a row's numbers in units of `values`.
double product_of(const float* a, const int64_t* sums, const Whole& values, size_t stride);

// Anchors as find_nearest() takes them: two beside each other, eight numbers of the one before eight of the other, so
// that processors with registers for sixteen numbers compute with both at once. Where a partner is missing there is the
// last anchor once more.
class AnchorPairs {
 public:
  explicit AnchorPairs(const Rows& anchors);

  uint32_t count() const { return count_; } // of anchors
  size_t stride() const { return stride_; }
  const float* pair(size_t index) const { return values_.data() + index * 2 * stride_; }
  size_t pairs() const { return values_.size() / (2 * stride_); }

 private:
  uint32_t count_;
  size_t stride_;
  std::vector<float> values_;
};

// The anchor at the least distance; of several the lowest index.
struct Nearest {
  uint32_t label = 0;
  float distance = 0;
  float next = 0; // the least distance to any other anchor; infinite if there is none
};
// For each of these vectors, which are rows. `found` has as many places.
void find_nearest(const Rows& rows, std::span<const uint32_t> vectors, const AnchorPairs& anchors,
                  std::span<Nearest> found);

// The relative error that a computed distance has at most, if neither overflows nor underflows: each of its roundings
// (a difference twice, as it is squared, a product, and the additions of a lane and of the lanes) is half a unit in the
// last place.
double error_of_distance(size_t stride);

// Bounds between distances that are computed, squared, and true ones, not squared.
struct DistanceBounds {
  explicit DistanceBounds(size_t stride);
  double at_least(float computed) const; // the true distance is at least this
  // True if every distance that is at least `away`, not squared, would also be computed as greater than `computed`.
  bool is_below(float computed, double away) const;
  // The least `away` for which is_below() is true, and a little more.
  double reach(float computed) const;

 private:
  double above_, below_; // the root of a computed distance over the true one, at most and at least
};

} // namespace millrace::codebook
