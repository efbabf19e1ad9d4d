// The words that the steps of a resident fit are written in: the threads of a block, and additions and comparisons that
// many threads make in one place. On the host one thread does all of it, one after the other, so that the same steps
// are tested without a GPU.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

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

// The distances between some rows and others, by eight threads beside each other; all of them get these.
template <uint32_t kRows, uint32_t kOthers>
__device__ void distances_by_lanes(const float* const (&rows)[kRows], const float* const (&others)[kOthers],
                                   float (&sums)[kRows][kOthers], uint32_t stride) {
  constexpr uint32_t kLoads = 32; // in flight
#pragma unroll
  for (auto& of_row : sums)
    for (float& sum : of_row) sum = 0;
#pragma unroll kLoads / (kRows + kOthers)
  for (uint32_t j = threadIdx.x % kLanes; j < stride; j += kLanes)
#pragma unroll
    for (uint32_t row = 0; row < kRows; ++row)
#pragma unroll
      for (uint32_t other = 0; other < kOthers; ++other) {
        const float apart = rows[row][j] - others[other][j];
        sums[row][other] += apart * apart;
      }
#pragma unroll
  for (auto& of_row : sums)
#pragma unroll
    for (float& sum : of_row)
      for (uint32_t apart = 1; apart < kLanes; apart *= 2) sum += __shfl_xor_sync(kAllLanes, sum, apart);
}
__device__ inline float distance_by_lanes(const float* x, const float* a, uint32_t stride) {
  const float* const row[1] = {x};
  const float* const other[1] = {a};
  float sum[1][1];
  distances_by_lanes(row, other, sum, stride);
  return sum[0][0];
}

template <class T>
__device__ T from_lane(const T& own, uint32_t apart, bool up) { // up: of the thread so many before; else across
  static_assert(sizeof(T) % sizeof(uint32_t) == 0);
  auto words = std::bit_cast<std::array<uint32_t, sizeof(T) / sizeof(uint32_t)>>(own);
#pragma unroll
  for (uint32_t& word : words)
    word = up ? __shfl_up_sync(kAllLanes, word, apart) : __shfl_xor_sync(kAllLanes, word, apart);
  return std::bit_cast<T>(words);
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

// Distances between two rows each: give(i, distance) for 0 … count − 1.
template <class RowAt, class OtherAt, class Give>
MR_HOST_DEVICE void distances_between(const Block& block, uint32_t stride, uint64_t count, RowAt&& row_at,
                                      OtherAt&& other_at, Give&& give) {
#ifdef __CUDA_ARCH__
  const uint64_t at_once = blockDim.x / kLanes;
  for (uint64_t first = 0; first < count; first += at_once) {
    const uint64_t i = first + threadIdx.x / kLanes, at = i < count ? i : 0;
    const float distance = distance_by_lanes(row_at(at), other_at(at), stride);
    if (threadIdx.x % kLanes == 0 && i < count) give(i, distance);
  }
  __syncthreads();
#else
  (void)block;
  for (uint64_t i = 0; i < count; ++i) give(i, distance_of(row_at(i), other_at(i), stride));
#endif
}
// Distances of rows to one row.
template <class RowAt, class Give>
MR_HOST_DEVICE void distances_to(const Block& block, const float* to, uint32_t stride, uint64_t count, RowAt&& row_at,
                                 Give&& give) {
  distances_between(
      block, stride, count, row_at, [&](uint64_t) { return to; }, give);
}

// Distances of rows to two rows: give(i, to_one, to_other).
template <class RowAt, class Give>
MR_HOST_DEVICE void distances_to_two(const Block& block, const float* one, const float* other, uint32_t stride,
                                     uint64_t count, RowAt&& row_at, Give&& give) {
#ifdef __CUDA_ARCH__
  const uint64_t at_once = blockDim.x / kLanes;
  for (uint64_t first = 0; first < count; first += at_once) {
    const uint64_t i = first + threadIdx.x / kLanes;
    const float* const row[1] = {row_at(i < count ? i : 0)};
    const float* const others[2] = {one, other};
    float distances[1][2];
    distances_by_lanes(row, others, distances, stride);
    if (threadIdx.x % kLanes == 0 && i < count) give(i, distances[0][0], distances[0][1]);
  }
  __syncthreads();
#else
  (void)block;
  for (uint64_t i = 0; i < count; ++i)
    give(i, distance_of(row_at(i), one, stride), distance_of(row_at(i), other, stride));
#endif
}

// The two least keys; of rows as near, the lower index comes first.
struct Nearest {
  uint64_t key = UINT64_MAX, next = UINT64_MAX;

  MR_HOST_DEVICE uint32_t index() const { return static_cast<uint32_t>(key); }
  MR_HOST_DEVICE float distance() const { return distance_of(key); }
  MR_HOST_DEVICE float next_distance() const { return distance_of(next); }
  MR_HOST_DEVICE void take(uint64_t other) {
    const uint64_t further = other < key ? key : other;
    if (other < key) key = other;
    if (further < next) next = further;
  }
  MR_HOST_DEVICE void join(const Nearest& other) {
    take(other.key);
    take(other.next);
  }

 private:
  MR_HOST_DEVICE static float distance_of(uint64_t key) {
    return key == UINT64_MAX ? std::numeric_limits<float>::infinity()
                             : detail::float_of_bits(static_cast<uint32_t>(key >> 32));
  }
};
// For each of some rows, the nearest of `count` others. All threads get them.
template <uint32_t kRows>
struct NearestOf {
  Nearest of[kRows];
};
template <uint32_t kRows, class OtherAt>
MR_HOST_DEVICE NearestOf<kRows> nearest_of(const Block& block, const float* const (&rows)[kRows], uint32_t stride,
                                           uint64_t count, OtherAt&& other_at) {
  const auto join = [](NearestOf<kRows> one, const NearestOf<kRows>& other) {
    for (uint32_t row = 0; row < kRows; ++row) one.of[row].join(other.of[row]);
    return one;
  };
#ifdef __CUDA_ARCH__
  constexpr uint32_t kAtOnce = 4; // others of a group of eight threads
  const uint64_t groups = blockDim.x / kLanes, group = threadIdx.x / kLanes;
  const auto take_own = [&](uint64_t, NearestOf<kRows>& found) {
    constexpr uint64_t kOfWarp = kWarpThreads / kLanes; // groups go on together
    for (uint64_t first = group; first - group % kOfWarp < count; first += groups * kAtOnce) {
      const float* others[kAtOnce];
      float distances[kRows][kAtOnce];
#pragma unroll
      for (uint32_t n = 0; n < kAtOnce; ++n) others[n] = other_at(min(first + n * groups, count - 1));
      distances_by_lanes(rows, others, distances, stride);
#pragma unroll
      for (uint32_t row = 0; row < kRows; ++row)
#pragma unroll
        for (uint32_t n = 0; n < kAtOnce; ++n) {
          const uint64_t i = first + n * groups;
          if (threadIdx.x % kLanes == 0 && i < count) found.of[row].take(key_of(distances[row][n], i));
        }
    }
  };
  return found_by(block, blockDim.x, NearestOf<kRows>(), take_own, join);
#else
  const auto take = [&](uint64_t i, NearestOf<kRows>& found) {
    for (uint32_t row = 0; row < kRows; ++row)
      found.of[row].take(key_of(distance_of(rows[row], other_at(i), stride), i));
  };
  return found_by(block, count, NearestOf<kRows>(), take, join);
#endif
}

} // namespace millrace::codebook::gpu
