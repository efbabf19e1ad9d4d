// How kernels are launched here, and what a launch has to say.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace millrace::handlers::gpu {

inline constexpr unsigned kBlockWidth = 32, kBlockHeight = 8;

// Blocks that cover so many threads each way.
inline dim3 blocks_for(uint32_t width, uint32_t height, uint32_t depth = 1) {
  return {(width + kBlockWidth - 1) / kBlockWidth, (height + kBlockHeight - 1) / kBlockHeight, depth};
}

// Behind a launch: null, or what was wrong with it.
inline const char* launched() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace millrace::handlers::gpu
