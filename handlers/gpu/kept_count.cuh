// A count that kernels add to, at the beginning of a handler's scratch memory, from start() to stop().
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "handlers/gpu/kept_count.h"

namespace millrace::handlers::gpu {

namespace detail {

// Makes the device that has this memory the current one, while it lives. start() and stop() are called on any thread.
class OnDeviceOf {
 public:
  explicit OnDeviceOf(const void* memory) {
    cudaPointerAttributes attributes{};
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = -1;
    if (cudaPointerGetAttributes(&attributes, memory) == cudaSuccess) cudaSetDevice(attributes.device);
    (void)cudaGetLastError(); // a later launch is not to report it
  }
  ~OnDeviceOf() {
    if (before_ >= 0) cudaSetDevice(before_);
  }
  OnDeviceOf(const OnDeviceOf&) = delete;
  OnDeviceOf& operator=(const OnDeviceOf&) = delete;

 private:
  int before_ = -1;
};

inline const char* begin_count(void* stream, void* scratch) {
  const OnDeviceOf current(scratch);
  const cudaError_t error = cudaMemsetAsync(scratch, 0, sizeof(uint64_t), static_cast<cudaStream_t>(stream));
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

inline bool read_count(void* stream, const void* scratch, uint64_t& count) {
  const OnDeviceOf current(scratch);
  const auto of_cuda = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaStreamQuery(of_cuda);
  for (int waits = 0; error == cudaErrorNotReady && waits < 1000; ++waits) { // never for longer: it may be stuck
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    error = cudaStreamQuery(of_cuda);
  }
  if (error == cudaSuccess) error = cudaMemcpyAsync(&count, scratch, sizeof count, cudaMemcpyDeviceToHost, of_cuda);
  if (error == cudaSuccess) error = cudaStreamSynchronize(of_cuda);
  (void)cudaGetLastError();
  return error == cudaSuccess;
}

} // namespace detail

inline constexpr KeptCount kKeptCount{&detail::begin_count, &detail::read_count};

} // namespace millrace::handlers::gpu
