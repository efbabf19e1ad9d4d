// The words that the steps of a resident fit are written in: the threads of a block, and additions and comparisons that
// many threads make in one place. On the host one thread does all of it, one after the other, so that the same steps
// are tested without a GPU.
#pragma once

#include <bit>
#include <cstdint>

#include "millrace/payload/half_floats.h"
#include "plugins/codebook/gpu/lane_sums.h"

namespace millrace::codebook::gpu {

// Threads that share work and meet after each piece of it.
struct Block {
  static constexpr uint32_t kShared = 512;

  uint64_t* shared;  // kShared numbers of the block
  uint32_t index;    // the block's place in its grid
  uint32_t rounds;   // the loop around has run so many
  bool ends = false; // set by a step: the loop around ends after this round

  // Calls f(i) for 0 … count − 1 and waits for all.
  template <class F>
  MR_HOST_DEVICE void each(uint64_t count, F&& f) const {
#ifdef __CUDA_ARCH__
    for (uint64_t i = threadIdx.x; i < count; i += blockDim.x) f(i);
    __syncthreads();
#else
    for (uint64_t i = 0; i < count; ++i) f(i);
#endif
  }
  // Calls f() once and waits for it.
  template <class F>
  MR_HOST_DEVICE void once(F&& f) const {
    each(1, [&](uint64_t) { f(); });
  }
};

// Whole numbers that several threads add up; the order does not matter.
MR_HOST_DEVICE inline uint32_t add_to(uint32_t& place, uint32_t more) {
#ifdef __CUDA_ARCH__
  return atomicAdd(&place, more);
#else
  const uint32_t before = place;
  place += more;
  return before;
#endif
}
MR_HOST_DEVICE inline void add_to(uint64_t& place, uint64_t more) {
#ifdef __CUDA_ARCH__
  atomicAdd(reinterpret_cast<unsigned long long*>(&place), static_cast<unsigned long long>(more));
#else
  place += more;
#endif
}
MR_HOST_DEVICE inline void add_to(int64_t& place, int64_t more) {
  add_to(reinterpret_cast<uint64_t&>(place), static_cast<uint64_t>(more));
}
MR_HOST_DEVICE inline void raise_to(uint64_t& place, uint64_t at_least) {
#ifdef __CUDA_ARCH__
  atomicMax(reinterpret_cast<unsigned long long*>(&place), static_cast<unsigned long long>(at_least));
#else
  if (place < at_least) place = at_least;
#endif
}
MR_HOST_DEVICE inline void lower_to(uint64_t& place, uint64_t at_most) {
#ifdef __CUDA_ARCH__
  atomicMin(reinterpret_cast<unsigned long long*>(&place), static_cast<unsigned long long>(at_most));
#else
  if (place > at_most) place = at_most;
#endif
}

MR_HOST_DEVICE inline uint64_t bits_of(double number) { return std::bit_cast<uint64_t>(number); }
MR_HOST_DEVICE inline double double_of(uint64_t bits) { return std::bit_cast<double>(bits); }
// The order of these is that of the numbers, also of negative ones.
MR_HOST_DEVICE inline uint64_t ordered_bits(double number) {
  const uint64_t bits = bits_of(number + 0.0); // no negative zero
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}

// A vector, or an anchor, at a distance: keys have the order of distances, which have no sign; an index decides between
// equal ones.
MR_HOST_DEVICE inline uint64_t key_of(float distance, uint64_t index) {
  return uint64_t{detail::bits_of_float(distance)} << 32 | index;
}

// ---- what the threads of a block find together

#ifdef __CUDACC__
inline constexpr unsigned kAllLanes = 0xffffffff;
inline constexpr uint32_t kWarpThreads = 32;

// The distance between two rows, by eight threads beside each other; all of them get it.
__device__ inline float distance_by_lanes(const float* x, const float* a, uint32_t lane, uint32_t stride) {
  float sum = 0;
#pragma unroll 8
  for (uint32_t j = lane; j < stride; j += kLanes) {
    const float apart = x[j] - a[j];
    sum += apart * apart;
  }
  for (uint32_t other = 1; other < kLanes; other *= 2) sum += __shfl_xor_sync(kAllLanes, sum, other);
  return sum;
}

template <class T>
__device__ T from_lane(const T& own, uint32_t apart, bool up) { // up: of the thread so many before; else across
  static_assert(sizeof(T) % sizeof(uint32_t) == 0);
  T other;
  const auto* from = reinterpret_cast<const uint32_t*>(&own);
  auto* to = reinterpret_cast<uint32_t*>(&other);
#pragma unroll
  for (uint32_t word = 0; word < sizeof(T) / sizeof(uint32_t); ++word)
    to[word] = up ? __shfl_up_sync(kAllLanes, from[word], apart) : __shfl_xor_sync(kAllLanes, from[word], apart);
  return other;
}
#endif

// Folds what take(i, found) makes of 0 … count − 1, beginning with `none`. All threads get it. join(one, other) knows
// no order.
template <class T, class Take, class Join>
MR_HOST_DEVICE T found_by(const Block& block, uint64_t count, const T& none, Take&& take, Join&& join) {
  T found = none;
#ifdef __CUDA_ARCH__
  static_assert(kWarpThreads * sizeof(T) <= Block::kShared * sizeof(uint64_t));
  T* const of_warps = reinterpret_cast<T*>(block.shared);
  const uint32_t lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  for (uint64_t i = threadIdx.x; i < count; i += blockDim.x) take(i, found);
  for (uint32_t apart = kWarpThreads / 2; apart > 0; apart /= 2) found = join(found, from_lane(found, apart, false));
  if (lane == 0) of_warps[warp] = found;
  __syncthreads();
  if (warp == 0) {
    found = lane < blockDim.x / kWarpThreads ? of_warps[lane] : none;
    for (uint32_t apart = kWarpThreads / 2; apart > 0; apart /= 2) found = join(found, from_lane(found, apart, false));
    if (lane == 0) of_warps[0] = found;
  }
  __syncthreads();
  found = of_warps[0];
  __syncthreads();
#else
  (void)block, (void)join;
  for (uint64_t i = 0; i < count; ++i) take(i, found);
#endif
  return found;
}

// The sum of whole numbers, and the first of the least keys.
template <class NumberAt>
MR_HOST_DEVICE uint64_t sum_of(const Block& block, uint64_t count, NumberAt&& number_at) {
  return found_by(
      block, count, uint64_t{0}, [&](uint64_t i, uint64_t& sum) { sum += static_cast<uint64_t>(number_at(i)); },
      [](uint64_t one, uint64_t other) { return one + other; });
}
struct Least {
  uint64_t key = UINT64_MAX, index = UINT64_MAX;
};
template <class KeyAt>
MR_HOST_DEVICE Least least_of(const Block& block, uint64_t count, KeyAt&& key_at) {
  const auto first = [](const Least& one, const Least& other) {
    return other.key < one.key || (other.key == one.key && other.index < one.index) ? other : one;
  };
  return found_by(
      block, count, Least(),
      [&](uint64_t i, Least& found) {
        found = first(found, Least{key_at(i), i});
      },
      first);
}

// Gives each of `count` numbers the sum of those before it: take(i) is a number, give(i, before) gets the sum.
template <class Take, class Give>
MR_HOST_DEVICE void sum_up_before(const Block& block, uint64_t count, Take&& take, Give&& give) {
#ifdef __CUDA_ARCH__
  const uint32_t lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  const uint64_t share = (count + blockDim.x - 1) / blockDim.x;
  const uint64_t begin = min(count, threadIdx.x * share), end = min(count, begin + share);
  uint64_t own = 0;
  for (uint64_t i = begin; i < end; ++i) own += take(i);
  const auto scan = [lane](uint64_t sum) { // up to this lane
    for (uint32_t apart = 1; apart < kWarpThreads; apart *= 2) {
      const uint64_t below = from_lane(sum, apart, true);
      if (lane >= apart) sum += below;
    }
    return sum;
  };
  const uint64_t up_to_here = scan(own);
  if (lane == kWarpThreads - 1) block.shared[warp] = up_to_here;
  __syncthreads();
  if (warp == 0) {
    const uint64_t of_warp = lane < blockDim.x / kWarpThreads ? block.shared[lane] : 0;
    block.shared[lane] = scan(of_warp) - of_warp;
  }
  __syncthreads();
  uint64_t before = block.shared[warp] + up_to_here - own;
  for (uint64_t i = begin; i < end; ++i) {
    const uint64_t number = take(i);
    give(i, before);
    before += number;
  }
  __syncthreads();
#else
  (void)block;
  uint64_t before = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t number = take(i);
    give(i, before);
    before += number;
  }
#endif
}

// Distances of rows to one row, in lanes: give(i, distance) for 0 … count − 1.
template <class RowAt, class Give>
MR_HOST_DEVICE void distances_to(const Block& block, const float* to, uint32_t stride, uint64_t count, RowAt&& row_at,
                                 Give&& give) {
#ifdef __CUDA_ARCH__
  const uint32_t lane = threadIdx.x % kLanes;
  const uint64_t at_once = blockDim.x / kLanes;
  for (uint64_t first = 0; first < count; first += at_once) {
    const uint64_t i = first + threadIdx.x / kLanes;
    const float distance = distance_by_lanes(row_at(i < count ? i : 0), to, lane, stride);
    if (lane == 0 && i < count) give(i, distance);
  }
  __syncthreads();
#else
  (void)block;
  for (uint64_t i = 0; i < count; ++i) give(i, distance_of(row_at(i), to, stride));
#endif
}

} // namespace millrace::codebook::gpu
