// Squared distances between rows, and the nearest of several rows; see lanes.h for the order of the sums.
#pragma once

#include <cstdint>

#include "plugins/codebook/lanes.h"

namespace millrace::codebook {

// Σ (x − a)² over `stride` numbers, which are whole lanes, in single precision.
float distance(const float* x, const float* a, size_t stride);

// The anchor at the least distance; of several the lowest index.
struct Nearest {
  uint32_t label = 0;
  float distance = 0;
  float next = 0; // the least distance to any other anchor; infinite if there is none
};
Nearest nearest(const float* x, const Rows& anchors);

// The relative error that a computed distance has at most, if neither overflows nor underflows: each of its roundings
// (a difference twice, as it is squared, a product, and the additions of a lane and of the lanes) is half a unit in the
// last place.
double error_of_distance(size_t stride);

} // namespace millrace::codebook
