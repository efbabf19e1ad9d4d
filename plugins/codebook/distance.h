// Sums over rows: squared distances, squares and products, and the nearest of several rows. See lanes.h for the order
// of the sums.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/codebook/distance_bounds.h"
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

} // namespace millrace::codebook
