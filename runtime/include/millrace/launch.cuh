// Launches kernels of a captured body so that each may come up while the one before it ends (programmatic dependent
// launch; compute capability 9 and CUDA 13). In a chain of short kernels the way from one to the next is a large part
// of the time. For .cu files; needs CUDA's headers and nothing else of millrace.
//
//     __global__ void invert(uint8_t* to, const uint8_t* from, uint64_t count) {
//       millrace::await_inputs(); // first of all: before it nothing may be read that others write, and nothing written
//       …
//     }
//     …
//     if (const cudaError_t error = millrace::launch({blocks, threads, 0, stream}, invert, to, from, count); error) …
//
// It takes what the kernel was compiled for: machine code or PTX of compute_90 or newer. Any other one is launched as
// with <<<…>>>, and so are all outside captures.
//
// Invariant. A kernel that is launched so calls await_inputs() in every thread that touches memory, and in one thread
// at least whatever its arguments are: who waits for this kernel relies on it for all that came before. One that does
// not is launched with <<<…>>>, as ever, and may stand between others.
#pragma once

#include <cuda_runtime.h>

#include <utility>

namespace millrace {

// On the device. Lets the kernel behind this one come up, and waits until all that this one depends on is over and can
// be read. What comes up has to wait in its turn, so it may as well be told at once; its blocks take room meanwhile
// that branches beside it would find.
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

namespace detail {

// Whether the code that runs here was compiled to wait in await_inputs(). What a driver compiles from older PTX was
// not, whatever device it is for.
inline bool awaits_inputs(const void* kernel) {
  cudaFuncAttributes attributes{};
  const bool known = cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;
  if (!known) (void)cudaGetLastError();
  return known && attributes.ptxVersion >= 90;
}

// Whether what the stream's capture depends on is one kernel and nothing else. Behind several branches, copies and
// fills a kernel comes up when they are over.
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

} // namespace detail

// As kernel<<<blocks, threads, shared_bytes, stream>>>(arguments…). What went wrong is returned, and also what CUDA
// keeps as the last error.
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
  if (detail::follows_one_kernel(shape.stream) && detail::awaits_inputs(reinterpret_cast<const void*>(kernel))) {
    config.attrs = &early;
    config.numAttrs = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

} // namespace millrace
