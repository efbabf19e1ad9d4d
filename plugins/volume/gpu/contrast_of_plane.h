// The contrast and the histogram of a volume's middle plane, by one block: the same as the host finds.
#pragma once

#include <cuda_runtime.h>

#include "millrace/payload/view.h"
#include "plugins/volume/contrast.h"
#include "plugins/volume/voxels.h"

namespace millrace::volume::gpu {

// Calls take(value) for the finite ones of samples_of_middle_plane(), shared out among the block's threads.
template <class Number, class Take>
__device__ void each_sample(const Voxels<Number>& voxels, Take&& take) {
  const uint64_t count = uint64_t{static_cast<uint32_t>(voxels.width)} * static_cast<uint32_t>(voxels.height);
  const uint64_t apart = count / (uint64_t{1} << 20) + 1;
  const Number* const plane = voxels.data + static_cast<uint64_t>(voxels.depth / 2) * count;
  for (uint64_t i = threadIdx.x * apart; i < count; i += blockDim.x * apart)
    if (const auto value = static_cast<float>(plane[i]); isfinite(value)) take(value);
}

// Keys have the order of their numbers.
__device__ inline uint32_t key_of(float value) {
  const uint32_t bits = __float_as_uint(value);
  return bits ^ (bits >> 31 ? 0xffffffffU : 0x80000000U);
}
__device__ inline float number_of(uint32_t key) {
  return __uint_as_float(key ^ (key >> 31 ? 0x80000000U : 0xffffffffU));
}

// Adds 1 for each thread that comes here; those of a warp with the same place add once.
__device__ inline void count_one(uint32_t* counts, uint32_t place) {
  const uint32_t active = __activemask(), same = __match_any_sync(active, place);
  if ((threadIdx.x & 31U) == static_cast<uint32_t>(__ffs(static_cast<int>(same)) - 1))
    atomicAdd(&counts[place], static_cast<uint32_t>(__popc(same)));
}

// The search for two samples by rank, eight bits of their keys at a time.
struct Selection {
  static constexpr uint32_t kBits = 8, kDigits = 1U << kBits;
  uint32_t counts[2][kDigits];
  uint32_t keys[2];  // the digits that are found, in the lowest bits
  uint32_t ranks[2]; // among the samples with these digits
  uint32_t samples;
};

// Puts the next digit of sample `which`. One thread calls it.
__device__ inline void choose_digit(Selection& found, uint32_t which) {
  uint32_t digit = 0;
  for (; digit + 1 < Selection::kDigits && found.ranks[which] >= found.counts[which][digit]; ++digit)
    found.ranks[which] -= found.counts[which][digit];
  found.keys[which] = found.keys[which] << Selection::kBits | digit;
}

// Called by the whole block, all of which gets the contrast.
template <class Number>
__device__ Contrast contrast_of_plane(const Voxels<Number>& voxels, Selection& found) {
  constexpr double kPartBelow = 0.005, kPartAbove = 0.995; // as first_contrast()
  for (uint32_t shift = 32; shift > 0;) {
    shift -= Selection::kBits;
    const bool is_first = shift == 32 - Selection::kBits;
    for (uint32_t i = threadIdx.x; i < 2 * Selection::kDigits; i += blockDim.x)
      found.counts[i / Selection::kDigits][i % Selection::kDigits] = 0;
    __syncthreads();
    each_sample(voxels, [&](float value) {
      const uint32_t key = key_of(value), digit = key >> shift & (Selection::kDigits - 1);
      for (uint32_t which = 0; which < 2; ++which)
        if (is_first || key >> (shift + Selection::kBits) == found.keys[which]) count_one(found.counts[which], digit);
    });
    __syncthreads();
    if (threadIdx.x == 0) {
      if (is_first) {
        found.samples = 0;
        for (const uint32_t count : found.counts[0]) found.samples += count;
        const double last = found.samples == 0 ? 0 : static_cast<double>(found.samples - 1);
        found.ranks[0] = static_cast<uint32_t>(kPartBelow * last);
        found.ranks[1] = static_cast<uint32_t>(kPartAbove * last);
        found.keys[0] = found.keys[1] = 0;
      }
      for (uint32_t which = 0; which < 2; ++which) choose_digit(found, which);
    }
    __syncthreads();
  }
  if (found.samples == 0) return {};
  Contrast contrast = {number_of(found.keys[0]), number_of(found.keys[1])};
  if (contrast.high <= contrast.low) contrast.high = contrast.low + 1;
  return contrast;
}

// As count_levels() on the host. `counts` is in shared memory. Called by the whole block.
template <class Number>
__device__ void count_levels_of_plane(const Voxels<Number>& voxels, Contrast contrast, float low, float high,
                                      uint32_t (&counts)[ViewControl::kParts]) {
  for (uint32_t i = threadIdx.x; i < ViewControl::kParts; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  each_sample(voxels, [&](float value) {
    const float part = (value - contrast.low) / (contrast.high - contrast.low), at = (part - low) / (high - low);
    if (!(at >= 0 && at <= 1)) return;
    const auto place = static_cast<uint32_t>(at * float{ViewControl::kParts});
    count_one(counts, place < ViewControl::kParts ? place : ViewControl::kParts - 1);
  });
  __syncthreads();
}

} // namespace millrace::volume::gpu
