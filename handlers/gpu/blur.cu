// Blurs pictures: one block per tile and one launch per plane.
#include "handlers/gpu/blur.h"

#include "handlers/gpu/image_launches.h"
#include "handlers/gpu/launch.cuh"
#include "handlers/image/planes.h"

namespace millrace::handlers::gpu {
namespace {

template <class Of>
__global__ void __launch_bounds__(kBlurThreads) blur(const __grid_constant__ PlaneBlur plane, uint32_t pitch) {
  await_inputs();
  extern __shared__ __align__(16) uint8_t shared[];
  const BlurMemory memory = blur_memory(shared, pitch, plane.weights.radius);
  const uint32_t left = blockIdx.x * plane.tile_width, top = blockIdx.y * kBlurRows;
  blur_prepare(plane, top, threadIdx.x, memory);
  __syncthreads();
  blur_columns<Of>(plane, left, threadIdx.x, memory);
  __syncthreads();
  blur_borders<Of::kChannels>(plane, left, threadIdx.x, memory);
  __syncthreads();
  blur_rows<Of>(plane, left, top, threadIdx.x, memory);
}

template <class Of>
void launch_plane(cudaStream_t stream, const PlaneBlur& plane) {
  const uint32_t radius = plane.weights.radius, pitch = blur_pitch(plane.tile_width, radius, Of::kChannels);
  const dim3 blocks((plane.width + plane.tile_width - 1) / plane.tile_width,
                    (plane.height + kBlurRows - 1) / kBlurRows);
  launch({blocks, kBlurThreads, blur_memory_bytes(pitch, radius), stream}, blur<Of>, plane, pitch);
}

} // namespace

const char* launch_blur(void* stream, const DevicePicture& source, const DevicePicture& target,
                        const GaussianKernel& kernel, const GaussianKernel& chroma_kernel) {
  const Pixel pixel = static_cast<Pixel>(source.image.format);
  const auto on = static_cast<cudaStream_t>(stream);
  for (uint32_t p = 0; p < source.image.plane_count; ++p) {
    const PlaneBlur plane = plane_blur(source, target, p, p > 0 ? chroma_kernel : kernel);
    with_samples(pixel, p, [&]<class Of>(Of) { launch_plane<Of>(on, plane); });
  }
  return launched();
}

} // namespace millrace::handlers::gpu
