// Computes launch grids, selects kernels by sample size, and reports the error of a launch.
#pragma once

#include <cuda_runtime.h>
#include <millrace/abi.h>
#include <millrace/launch.cuh>

#include <cstdint>
#include <type_traits>

namespace millrace::handlers::gpu {

inline constexpr unsigned kBlockWidth = 32, kBlockHeight = 8;

// The number of blocks that cover so many threads in each direction.
inline dim3 blocks_for(uint32_t width, uint32_t height, uint32_t depth = 1) {
  return {(width + kBlockWidth - 1) / kBlockWidth, (height + kBlockHeight - 1) / kBlockHeight, depth};
}

inline const dim3 kBlock(kBlockWidth, kBlockHeight);

// The number of blocks for a picture whose threads have tiles of this size.
inline dim3 tile_blocks(const mr_image& image, uint32_t tile_width, uint32_t tile_height) {
  return blocks_for((image.width + tile_width - 1) / tile_width, (image.height + tile_height - 1) / tile_height);
}

// Calls launch(std::integral_constant<uint32_t, N>) with the bytes of a sample, 1 to 4: there is one kernel for each.
template <class Launch>
void by_sample_bytes(uint32_t bytes, const Launch& launch) {
  switch (bytes) {
    case 1: return launch(std::integral_constant<uint32_t, 1>());
    case 2: return launch(std::integral_constant<uint32_t, 2>());
    case 3: return launch(std::integral_constant<uint32_t, 3>());
    default: return launch(std::integral_constant<uint32_t, 4>());
  }
}

// Call it after a launch: null, or the error message.
inline const char* launched() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace millrace::handlers::gpu
