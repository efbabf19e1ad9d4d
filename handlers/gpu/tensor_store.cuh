// Stores the numbers of a tensor in kernels, and finds the region of a picture that a patch shows.
#pragma once

#include <cuda_fp16.h>

#include "handlers/gpu/patch.h"
#include "handlers/gpu/tensor_kernels.h"

namespace millrace::handlers::gpu {

__device__ inline void store(void* target, size_t index, bool half, float number) {
  if (half)
    static_cast<__half*>(target)[index] = __float2half_rn(number);
  else
    static_cast<float*>(target)[index] = number;
}

// Stores two numbers at an even index.
__device__ inline void store_two(void* target, size_t index, bool half, float first, float second) {
  if (half)
    static_cast<__half2*>(target)[index / 2] = __floats2half2_rn(first, second);
  else
    static_cast<float2*>(target)[index / 2] = make_float2(first, second);
}

// The numbers of two neighbouring pixels of three channels, in the order of an interleaved tensor.
struct SixNumbers {
  float at[6];
};
__device__ inline SixNumbers six_numbers(const ChannelForm& channels, const UnitRgb& left, const UnitRgb& right) {
  const bool turned = channels.place[0] == 2;
  return {{turned ? left.blue : left.red, left.green, turned ? left.red : left.blue, turned ? right.blue : right.red,
           right.green, turned ? right.red : right.blue}};
}

// Stores two neighbouring pixels, the second of which may be beyond the row's end.
__device__ inline void store_any(const TensorForm& form, const ChannelForm& channels, void* target, uint32_t patch,
                                 uint32_t x, uint32_t y, const UnitRgb& left, const UnitRgb& right) {
  const float from_left[3] = {left.red, left.green, left.blue}, from_right[3] = {right.red, right.green, right.blue};
  const size_t plane = size_t{form.width} * form.height, pixel = size_t{y} * form.width + x;
  const bool two = x + 1 < form.width, even = form.width % 2 == 0;
  if (form.interleaved && form.channels == 3 && two && even) {
    const size_t index = (patch * plane + pixel) * 3;
    const SixNumbers six = six_numbers(channels, left, right);
#pragma unroll
    for (uint32_t i = 0; i < 6; i += 2) store_two(target, index + i, form.half, six.at[i], six.at[i + 1]);
    return;
  }
#pragma unroll
  for (uint32_t c = 0; c < 3; ++c) {
    if (c >= form.channels) break;
    const uint32_t place = form.channels == 1 ? 0 : channels.place[c];
    if (form.interleaved) {
      const size_t index = (patch * plane + pixel) * form.channels + place;
      store(target, index, form.half, from_left[c]);
      if (two) store(target, index + form.channels, form.half, from_right[c]);
      continue;
    }
    // If the width is odd, planes and rows may begin at odd places, so numbers are stored one by one.
    const size_t index = (size_t{patch} * form.channels + place) * plane + pixel;
    if (two && even) {
      store_two(target, index, form.half, from_left[c], from_right[c]);
    } else {
      store(target, index, form.half, from_left[c]);
      if (two) store(target, index + 1, form.half, from_right[c]);
    }
  }
}

// The whole picture as one region.
__host__ __device__ inline Region whole_region(const SampleSource& source, const TensorForm& form) {
  return region_of(0, 0, static_cast<float>(source.width), static_cast<float>(source.height),
                   static_cast<int32_t>(form.width), static_cast<int32_t>(form.height));
}

// The region of one patch; not valid for patches after the last box.
__device__ inline Region region_at(const Regions& regions, uint32_t index, const SampleSource& source,
                                   const TensorForm& form) {
  if (regions.whole) return whole_region(source, form);
  if (!regions.boxes || index >= *regions.count) return {0, 0, 0, 0, false};
  const Box& box = regions.boxes[index];
  return region_of(box.x, box.y, box.width, box.height, static_cast<int32_t>(form.width),
                   static_cast<int32_t>(form.height));
}

} // namespace millrace::handlers::gpu
