// Blocks whose threads share a tile of a picture, and choose in order what touches it.
#pragma once

#include <cstdint>

#include "handlers/gpu/launch.cuh"
#include "handlers/gpu/library.h"

namespace millrace::handlers::gpu {

inline constexpr uint32_t kThreads = kBlockWidth * kBlockHeight, kWarps = kThreads / 32;

__device__ inline uint32_t thread_index() { return threadIdx.y * kBlockWidth + threadIdx.x; }

// For one vote: how many threads before this one are for it, and how many of all.
struct Votes {
  uint32_t before, all;
};

// Takes kCount votes of each thread. All threads of a block call it together.
template <uint32_t kCount>
__device__ void vote(const bool (&votes)[kCount], Votes (&result)[kCount]) {
  __shared__ uint32_t of_warp[kCount][kWarps];
  const uint32_t warp = thread_index() / 32, lane = thread_index() % 32;
  for (uint32_t v = 0; v < kCount; ++v) {
    const uint32_t ballot = __ballot_sync(0xffffffffu, votes[v]);
    if (lane == 0) of_warp[v][warp] = __popc(ballot);
    result[v] = {static_cast<uint32_t>(__popc(ballot & ((1u << lane) - 1))), 0};
  }
  __syncthreads();
  for (uint32_t v = 0; v < kCount; ++v)
    for (uint32_t w = 0; w < kWarps; ++w) {
      if (w < warp) result[v].before += of_warp[v][w];
      result[v].all += of_warp[v][w];
    }
  __syncthreads(); // before the next call writes
}

__device__ inline uint8_t* pixel_at(const DevicePicture& picture, int32_t x, int32_t y) {
  const mr_plane& plane = picture.image.planes[0];
  return picture.data + plane.offset + static_cast<size_t>(y) * plane.stride +
         static_cast<size_t>(x) * bytes_per_pixel(static_cast<Pixel>(picture.image.format));
}

} // namespace millrace::handlers::gpu
