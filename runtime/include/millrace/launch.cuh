// Launches kernels of a captured body so that each may start up while the one before it ends (programmatic dependent
// launch; compute capability 9 and CUDA 13). In a chain of short kernels, the gaps between them are a large part of the
// time. For .cu files; it needs CUDA's headers and nothing else of millrace.
//
//     __global__ void invert(uint8_t* to, const uint8_t* from, uint64_t count) {
//       millrace::await_inputs(); // first: before it a kernel may not write, nor read what other kernels write
//       …
//     }
//     …
//     if (const cudaError_t error = millrace::launch({blocks, threads, 0, stream}, invert, to, from, count); error) …
//
// This needs a kernel that was compiled as machine code or PTX of compute_90 or newer. launch() starts any other kernel
// as <<<…>>> does, and also every kernel outside a capture.
//
// Invariant. A kernel that is launched so calls await_inputs() in every thread that touches memory, and in at least one
// thread for any arguments: the work that waits for this kernel relies on it to have waited for all earlier work.
// Launch a kernel that does not with <<<…>>>; it may stand between others.
#pragma once

#include <cuda_runtime.h>

#include <utility>

namespace millrace {

// Called on the device. Lets the next kernel in the stream start up, and waits until all work that this kernel depends
// on is over and its results can be read. The next kernel waits in await_inputs() in its turn, so this one may let it
// start at once. The cost: its blocks meanwhile occupy room that parallel branches could use.
__device__ inline void await_inputs() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

struct LaunchShape {
  dim3 blocks, threads;
  unsigned shared_bytes = 0; // dynamic shared memory of a block
  cudaStream_t stream = nullptr;
};

namespace launch_detail {

// True if the code that runs here was compiled to wait in await_inputs(). Code that a driver compiles from older PTX
// was not, on any device.
inline bool awaits_inputs(const void* kernel) {
  cudaFuncAttributes attributes{};
  const bool known = cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;
  if (!known) (void)cudaGetLastError();
  return known && attributes.ptxVersion >= 90;
}

// True if the stream's capture depends on one kernel and nothing else. After several branches, a copy or a fill, a
// kernel starts up when they are over.
inline bool follows_one_kernel([[maybe_unused]] cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  if (cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &edges, &count) != cudaSuccess) return false;
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  return status == cudaStreamCaptureStatusActive && count == 1 &&
         cudaGraphNodeGetType(nodes[0], &type) == cudaSuccess && type == cudaGraphNodeTypeKernel;
#else
  return false;
#endif
}

} // namespace launch_detail

// Like kernel<<<blocks, threads, shared_bytes, stream>>>(arguments…). Returns the error, which CUDA also keeps as its
// last error.
template <class... Parameters, class... Arguments>
cudaError_t launch(const LaunchShape& shape, void (*kernel)(Parameters...), Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.blocks;
  config.blockDim = shape.threads;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = shape.stream;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  if (launch_detail::follows_one_kernel(shape.stream) &&
      launch_detail::awaits_inputs(reinterpret_cast<const void*>(kernel))) {
    config.attrs = &early;
    config.numAttrs = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

} // namespace millrace

#include "millrace/launch/repeat.cuh"
