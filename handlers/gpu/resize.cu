// Resizes pictures, with one kernel for each method and number of channels.
#include "handlers/gpu/resize.h"

#include "handlers/gpu/image_launches.h"
#include "handlers/gpu/launch.cuh"

namespace millrace::handlers::gpu {
namespace {

template <class Of, ResizeMethod kMethod, bool kMany>
__global__ void resize(const __grid_constant__ Resizing resizing) {
  await_inputs();
  constexpr ResizeTile kTile = resize_tile(kMethod, kMany);
  const uint32_t x = (blockIdx.x * kBlockWidth + threadIdx.x) * kTile.columns;
  const uint32_t y = (blockIdx.y * kBlockHeight + threadIdx.y) * kTile.rows;
  if (x < resizing.x.target && y < resizing.y.target) resize_tile_at<Of, kMethod, kMany>(resizing, x, y);
}

template <class Of, ResizeMethod kMethod, bool kMany = false>
void launch_kernel(cudaStream_t stream, const Resizing& resizing) {
  constexpr ResizeTile kTile = resize_tile(kMethod, kMany);
  const dim3 blocks = blocks_for((resizing.x.target + kTile.columns - 1) / kTile.columns,
                                 (resizing.y.target + kTile.rows - 1) / kTile.rows);
  launch({blocks, kBlock, 0, stream}, resize<Of, kMethod, kMany>, resizing);
}

template <class Of>
void launch_method(cudaStream_t stream, const Resizing& resizing, ResizeMethod method) {
  if (method == ResizeMethod::nearest) return launch_kernel<Of, ResizeMethod::nearest>(stream, resizing);
  if (method == ResizeMethod::bilinear) return launch_kernel<Of, ResizeMethod::bilinear>(stream, resizing);
  if (takes_many(resizing)) return launch_kernel<Of, ResizeMethod::area, true>(stream, resizing);
  launch_kernel<Of, ResizeMethod::area>(stream, resizing);
}

} // namespace

const char* launch_resize(void* stream, const DevicePicture& source, const DevicePicture& target, ResizeMethod method) {
  const auto on = static_cast<cudaStream_t>(stream);
  for (uint32_t plane = 0; plane < source.image.plane_count; ++plane)
    with_samples(static_cast<Pixel>(source.image.format), plane,
                 [&]<class Of>(Of) { launch_method<Of>(on, resizing_of(source, target, plane), method); });
  return launched();
}

} // namespace millrace::handlers::gpu
