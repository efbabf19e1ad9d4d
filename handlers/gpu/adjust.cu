// Adjusts pictures, with one kernel for each kind of samples. A block reads the table from shared memory, where its
// threads may read different entries at the same time.
#include "handlers/gpu/adjust.h"

#include "handlers/gpu/image_launches.h"
#include "handlers/gpu/launch.cuh"

namespace millrace::handlers::gpu {
namespace {

template <class Of>
__global__ void adjust(const __grid_constant__ PlaneTone plane,
                       const __grid_constant__ ToneTable<typename Of::Number> table) {
  await_inputs();
  using Number = typename Of::Number;
  __shared__ Number shared[kToneSteps<Number>];
  if (!plane.straight) {
    for (uint32_t i = threadIdx.y * kBlockWidth + threadIdx.x; i < kToneSteps<Number>; i += kBlockWidth * kBlockHeight)
      shared[i] = table.at[i];
    __syncthreads();
  }
  const uint32_t x = (blockIdx.x * kBlockWidth + threadIdx.x) * 4, y = blockIdx.y * kBlockHeight + threadIdx.y;
  if (x < plane.width && y < plane.height) adjust_four<Of>(plane, shared, x, y);
}

} // namespace

const char* launch_adjust(void* stream, const ToneAdjuster& tone, const DevicePicture& source,
                          const DevicePicture& target) {
  for (uint32_t p = 0; p < source.image.plane_count; ++p)
    with_samples(static_cast<Pixel>(source.image.format), p, [&]<class Of>(Of) {
      using Number = typename Of::Number;
      const PlaneTone plane = plane_tone<Number>(source, target, p, tone);
      launch({blocks_for((plane.width + 3) / 4, plane.height), kBlock, 0, static_cast<cudaStream_t>(stream)},
             adjust<Of>, plane, tone_table<Number>(source, tone));
    });
  return launched();
}

} // namespace millrace::handlers::gpu
