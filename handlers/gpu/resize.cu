// Resizes pictures, with one kernel for each method and number of channels.
#include "handlers/gpu/resize.h"

#include "handlers/gpu/image_launches.h"
#include "handlers/gpu/launch.cuh"

namespace millrace::handlers::gpu {
namespace {

template <uint32_t kChannels, ResizeMethod kMethod, bool kMany>
__global__ void resize(const __grid_constant__ Resizing resizing) {
  await_inputs();
  constexpr ResizeTile kTile = resize_tile(kMethod, kMany);
  const uint32_t x = (blockIdx.x * kBlockWidth + threadIdx.x) * kTile.columns;
  const uint32_t y = (blockIdx.y * kBlockHeight + threadIdx.y) * kTile.rows;
  if (x < resizing.x.target && y < resizing.y.target) resize_tile_at<kChannels, kMethod, kMany>(resizing, x, y);
}

template <uint32_t kChannels, ResizeMethod kMethod, bool kMany = false>
void launch_kernel(cudaStream_t stream, const Resizing& resizing) {
  constexpr ResizeTile kTile = resize_tile(kMethod, kMany);
  const dim3 blocks = tile_blocks(resizing.target.image, kTile.columns, kTile.rows);
  launch({blocks, kBlock, 0, stream}, resize<kChannels, kMethod, kMany>, resizing);
}

template <uint32_t kChannels>
void launch_method(cudaStream_t stream, const Resizing& resizing, ResizeMethod method) {
  if (method == ResizeMethod::nearest) return launch_kernel<kChannels, ResizeMethod::nearest>(stream, resizing);
  if (method == ResizeMethod::bilinear) return launch_kernel<kChannels, ResizeMethod::bilinear>(stream, resizing);
  if (takes_many(resizing)) return launch_kernel<kChannels, ResizeMethod::area, true>(stream, resizing);
  launch_kernel<kChannels, ResizeMethod::area>(stream, resizing);
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
