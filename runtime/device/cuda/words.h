// The two kernels of the runtime itself: one gives a recording's kernels the numbers of their tick, one tells the host
// that all before it is done.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "millrace/abi.h"

namespace millrace::device::cuda {

// Enqueues *target = value. `target` is device memory.
cudaError_t launch_set_tick(cudaStream_t stream, mr_device_tick* target, const mr_device_tick& value);
// Enqueues: the word, in mapped host memory, becomes tick->sequence, once all that the stream did before can be seen by
// the host.
cudaError_t launch_signal(cudaStream_t stream, uint64_t* word, const mr_device_tick* tick);
// Enqueues a copy by the device's own hands, between any two of its memory and mapped host memory.
cudaError_t launch_copy(cudaStream_t stream, void* target, const void* source, uint64_t bytes);

} // namespace millrace::device::cuda
