// The conformance suite on a real device: what a body does with memory is a kernel, the rest is called by the device in
// its turn.
#include <cuda_runtime.h>

#include "embed/device_module.h"
#include "tests/device/rigs.h"

namespace millrace::device::test {
namespace {

__global__ void increment(std::byte* bytes, uint64_t count) {
  for (uint64_t at = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; at < count;
       at += uint64_t{gridDim.x} * blockDim.x)
    bytes[at] = static_cast<std::byte>(static_cast<int>(bytes[at]) + 1);
}

void enqueue(cudaStream_t stream, Increment& body) { increment<<<8, 256, 0, stream>>>(body.bytes, body.count); }
template <class Body>
void enqueue(cudaStream_t stream, Body& body) {
  cudaLaunchHostFunc(stream, Body::run, &body);
}

struct CudaRig : Rig {
  CudaRig() {
    std::string why;
    REQUIRE_MESSAGE(embed::cuda_module().module, embed::cuda_module().why);
    std::vector<std::unique_ptr<Device>> devices = embed::cuda_module().module->make({{0}, pinned, ""}, why);
    REQUIRE_MESSAGE(!devices.empty(), why);
    device = std::move(devices[0]);
  }
  template <class Body>
  void run(Stream& stream, Body& body) {
    run_enqueuing(*device, stream, body,
                  [](void* native, Body& of) { enqueue(static_cast<cudaStream_t>(native), of); });
  }
};

} // namespace
} // namespace millrace::device::test

TYPE_TO_STRING_AS("cuda", millrace::device::test::CudaRig);

// The driver finds a wrong recording when it ends, and memory ends where the hardware's does.
#define LIMITED_DEVICE CpuRig
#define EVERY_DEVICE CudaRig
#define ENQUEUING_DEVICE CudaRig
#include "tests/device/conformance.h"
