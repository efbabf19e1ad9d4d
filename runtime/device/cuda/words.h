// The kernels of the runtime itself: one tells kernels the numbers of their tick and which lists are there, one tells
// the host that everything before it is done, and one copies bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/device.h"
#include "millrace/abi.h"

namespace millrace::device::cuda {

// Lists that may be absent from a replay: their records, in device memory, and a bit for each that is present.
struct ListWords {
  mr_value* values[kRecordedListsMax];
  uint32_t count, present;
};

// Enqueues *target = value, and writes the presence of the lists. The count of an absent one becomes 0. `target` is
// device memory.
cudaError_t launch_set_tick(cudaStream_t stream, mr_device_tick* target, const mr_device_tick& value,
                            const ListWords& lists = {});
// Enqueues a write of tick->sequence to the word, which is in mapped host memory. The write happens once the host can
// see everything that the stream did before.
cudaError_t launch_signal(cudaStream_t stream, uint64_t* word, const mr_device_tick* tick);
// Enqueues a copy that a kernel makes. Each end may be in the device's memory or in mapped host memory.
cudaError_t launch_copy(cudaStream_t stream, void* target, const void* source, uint64_t bytes);

} // namespace millrace::device::cuda
