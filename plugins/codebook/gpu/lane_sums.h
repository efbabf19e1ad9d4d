// Sums in the lanes of lanes.h by one thread, for host and device.
#pragma once

#include <cstdint>

#include "millrace/payload/half_floats.h"
#include "plugins/codebook/lanes.h"
#include "plugins/codebook/whole.h"

namespace millrace::codebook::gpu {

// Calls use(load(n)) for begin … end − 1 in a thread, one after the other. Several loads go ahead, so that they do not
// wait for one another; `load` only reads.
template <class Load, class Use>
MR_HOST_DEVICE void load_ahead(uint64_t begin, uint64_t end, Load&& load, Use&& use) {
#ifdef __CUDA_ARCH__
  constexpr uint32_t kAhead = 8;
  for (uint64_t first = begin; first < end; first += kAhead) {
    decltype(load(first)) loaded[kAhead];
#pragma unroll
    for (uint32_t n = 0; n < kAhead; ++n) loaded[n] = load(min(first + n, end - 1));
#pragma unroll
    for (uint32_t n = 0; n < kAhead; ++n)
      if (first + n < end) use(loaded[n]);
  }
#else
  for (uint64_t n = begin; n < end; ++n) use(load(n));
#endif
}

template <class Number>
MR_HOST_DEVICE Number sum_of_lanes(const Number (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// Σ (x − a)² over `stride` numbers.
MR_HOST_DEVICE inline float distance_of(const float* x, const float* a, uint32_t stride) {
  float lanes[kLanes] = {};
  for (uint32_t j = 0; j < stride; j += kLanes)
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const float apart = x[j + lane] - a[j + lane];
      lanes[lane] += apart * apart;
    }
  return sum_of_lanes(lanes);
}

// Lane by lane: Σ (x − a)², Σ x², and Σ a · s with s in units of `values`.
MR_HOST_DEVICE inline float distance_of_lane(const float* x, const float* a, uint32_t lane, uint32_t stride) {
  struct Pair {
    float x, a;
  };
  float sum = 0;
  load_ahead(
      0, stride / kLanes,
      [=](uint64_t n) {
        return Pair{x[n * kLanes + lane], a[n * kLanes + lane]};
      },
      [&](const Pair& pair) {
        const float apart = pair.x - pair.a;
        sum += apart * apart;
      });
  return sum;
}
MR_HOST_DEVICE inline double square_of_lane(const float* x, uint32_t lane, uint32_t stride) {
  double sum = 0;
  load_ahead(
      0, stride / kLanes, [=](uint64_t n) { return x[n * kLanes + lane]; },
      [&](float number) { sum += double{number} * double{number}; });
  return sum;
}
MR_HOST_DEVICE inline double product_of_lane(const float* a, const int64_t* sums, const Whole& values, uint32_t lane,
                                             uint32_t stride) {
  struct Pair {
    float a;
    int64_t sum;
  };
  double sum = 0;
  load_ahead(
      0, stride / kLanes,
      [=](uint64_t n) {
        return Pair{a[n * kLanes + lane], sums[n * kLanes + lane]};
      },
      [&](const Pair& pair) { sum += double{pair.a} * values.number(pair.sum); });
  return sum;
}

// The energy of a cell of `count` members: Σ|x|² − 2 a·Σx + n|a|² (Cell::energy).
MR_HOST_DEVICE inline double energy_from(double square, double product, uint32_t count, double anchor_square) {
  return (square - 2 * product) + static_cast<double>(count) * anchor_square;
}
MR_HOST_DEVICE inline double energy_of_cell(const float* anchor, const int64_t* sums, int64_t square, uint32_t count,
                                            const Whole& values, const Whole& squares, uint32_t stride) {
  double products[kLanes], own[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    products[lane] = product_of_lane(anchor, sums, values, lane, stride);
    own[lane] = square_of_lane(anchor, lane, stride);
  }
  return energy_from(squares.number(square), sum_of_lanes(products), count, sum_of_lanes(own));
}

} // namespace millrace::codebook::gpu
