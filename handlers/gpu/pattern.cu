// Paints the pictures of test.pattern, one tile a thread.
#include "handlers/gpu/image_launches.h"
#include "handlers/gpu/launch.cuh"
#include "handlers/gpu/painted.h"

namespace millrace::handlers::gpu {
namespace {

__global__ void paint(const __grid_constant__ Painting painting, const mr_device_tick* tick) {
  await_inputs();
  // The disc's place takes divisions of 64 bits, so it is computed once a block.
  __shared__ Scene scene;
  if (threadIdx.x == 0 && threadIdx.y == 0) scene = scene_of(painting, tick->index);
  __syncthreads();
  const uint32_t x = (blockIdx.x * kBlockWidth + threadIdx.x) * kTileWidth;
  const uint32_t y = (blockIdx.y * kBlockHeight + threadIdx.y) * kTileHeight;
  if (x < painting.target.image.width && y < painting.target.image.height) paint_tile(painting, scene, x, y);
}

} // namespace

const char* launch_paint(void* stream, Pattern pattern, const mr_device_tick* tick, const DevicePicture& target) {
  launch({tile_blocks(target.image, kTileWidth, kTileHeight), kBlock, 0, static_cast<cudaStream_t>(stream)}, paint,
         Painting(pattern, target), tick);
  return launched();
}

} // namespace millrace::handlers::gpu
