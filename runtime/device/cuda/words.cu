// The kernels that words.h enqueues.
#include <cuda/atomic>

#include <millrace/launch.cuh>

#include "device/cuda/words.h"

namespace millrace::device::cuda {
namespace {

__global__ void set_tick(mr_device_tick* target, mr_device_tick value, const __grid_constant__ ListWords lists) {
  const uint32_t thread = threadIdx.x;
  if (thread == 0) *target = value;
  if (thread >= lists.count) return;
  const bool present = lists.present >> thread & 1;
  lists.values[thread]->header.present = present;
  if (!present) lists.values[thread]->as.records.count = 0;
}
static_assert(kRecordedListsMax == 32, "a thread and a bit for each list");

// Kernels before it in the stream are over, so what they wrote is visible to this thread; the release carries that on
// to the host, which reads the word with acquire.
__global__ void signal(uint64_t* word, const mr_device_tick* tick) {
  await_inputs();
  ::cuda::atomic_ref<uint64_t, ::cuda::thread_scope_system>(*word).store(tick->sequence, ::cuda::memory_order_release);
}

__global__ void copy_bytes(uint8_t* target, const uint8_t* source, uint64_t bytes) {
  await_inputs();
  const uint64_t wide = bytes / sizeof(uint4);
  for (uint64_t at = threadIdx.x; at < wide; at += blockDim.x)
    reinterpret_cast<uint4*>(target)[at] = reinterpret_cast<const uint4*>(source)[at];
  for (uint64_t at = wide * sizeof(uint4) + threadIdx.x; at < bytes; at += blockDim.x) target[at] = source[at];
}

} // namespace

cudaError_t launch_copy(cudaStream_t stream, void* target, const void* source, uint64_t bytes) {
  return launch({1, 128, 0, stream}, copy_bytes, static_cast<uint8_t*>(target), static_cast<const uint8_t*>(source),
                bytes);
}

cudaError_t launch_set_tick(cudaStream_t stream, mr_device_tick* target, const mr_device_tick& value,
                            const ListWords& lists) {
  set_tick<<<1, kRecordedListsMax, 0, stream>>>(target, value, lists);
  return cudaGetLastError();
}

cudaError_t launch_signal(cudaStream_t stream, uint64_t* word, const mr_device_tick* tick) {
  return launch({1, 1, 0, stream}, signal, word, tick);
}

} // namespace millrace::device::cuda
