// How far a distance can be that was computed, and the other way round: what lets a fit leave out comparisons without
// changing a label. For host and device.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstddef>

#include "millrace/payload/half_floats.h"
#include "plugins/codebook/lanes.h"

namespace millrace::codebook {

// The relative error that a computed distance has at most, if neither overflows nor underflows: each of its roundings
// (a difference twice, as it is squared, a product, and the additions of a lane and of the lanes) is half a unit in the
// last place.
MR_HOST_DEVICE inline double error_of_distance(size_t stride) {
  const double roundings = 2 + 1 + static_cast<double>(stride / kLanes) + 3;
  return roundings * double{FLT_EPSILON} / 2 * (1 + 1e-3);
}

// Bounds between distances that are computed, squared, and true ones, not squared.
class DistanceBounds {
 public:
  MR_HOST_DEVICE explicit DistanceBounds(size_t stride)
      : above_(std::sqrt(1 + error_of_distance(stride)) + kDoubleSlack),
        below_(std::sqrt(1 - error_of_distance(stride)) - kDoubleSlack) {}

  // The true distance is at least this. An infinite distance was only too large for a float.
  MR_HOST_DEVICE double at_least(float computed) const {
    const double square = computed < FLT_MAX ? double{computed} : double{FLT_MAX};
    const double least = square - kSmallest;
    return std::sqrt(least > 0 ? least : 0.0) / above_;
  }
  // True if every distance that is at least `away`, not squared, would also be computed as greater than `computed`.
  // Another distance is computed as at least away · below, not squared. Both sides are squared, and `above` is room for
  // the roundings of this.
  MR_HOST_DEVICE bool is_below(float computed, double away) const {
    const double least = away * below_ / above_;
    return least > 0 && double{computed} + kSmallest < least * least;
  }
  // The least `away` for which is_below() is true, and a little more.
  MR_HOST_DEVICE double reach(float computed) const {
    return std::sqrt(double{computed} + 2 * kSmallest) * above_ * above_ / below_;
  }

 private:
  // A distance below this may have lost more to underflow than its relative error says.
  static constexpr double kSmallest = 1e-30;
  // Room for the roundings of bounds themselves, which are in double precision.
  static constexpr double kDoubleSlack = 1e-12;

  double above_, below_; // the root of a computed distance over the true one, at most and at least
};

} // namespace millrace::codebook
