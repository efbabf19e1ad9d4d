// Resizes pictures: four pixels of a row a thread, a kernel for each method and count of channels.
#include "handlers/gpu/resize.h"

#include "handlers/gpu/image_launches.h"
#include "handlers/gpu/launch.cuh"

namespace millrace::handlers::gpu {
namespace {

template <uint32_t kChannels, ResizeMethod kMethod>
__global__ void resize(const __grid_constant__ Resizing resizing) {
  const uint32_t x = (blockIdx.x * kBlockWidth + threadIdx.x) * 4, y = blockIdx.y * kBlockHeight + threadIdx.y;
  if (x < resizing.x.target && y < resizing.y.target) resize_four<kChannels, kMethod>(resizing, x, y);
}

template <uint32_t kChannels>
void launch_method(cudaStream_t stream, const Resizing& resizing, ResizeMethod method) {
  const dim3 blocks = tile_blocks(resizing.target.image, 4, 1);
  if (method == ResizeMethod::nearest)
    resize<kChannels, ResizeMethod::nearest><<<blocks, kBlock, 0, stream>>>(resizing);
  else if (method == ResizeMethod::bilinear)
    resize<kChannels, ResizeMethod::bilinear><<<blocks, kBlock, 0, stream>>>(resizing);
  else
    resize<kChannels, ResizeMethod::area><<<blocks, kBlock, 0, stream>>>(resizing);
}

} // namespace

const char* launch_resize(void* stream, const DevicePicture& source, const DevicePicture& target, ResizeMethod method) {
  const auto on = static_cast<cudaStream_t>(stream);
  const Resizing resizing = resizing_of(source, target);
  switch (bytes_per_pixel(static_cast<Pixel>(source.image.format))) {
    case 1: launch_method<1>(on, resizing, method); break;
    case 3: launch_method<3>(on, resizing, method); break;
    default: launch_method<4>(on, resizing, method);
  }
  return launched();
}

} // namespace millrace::handlers::gpu
