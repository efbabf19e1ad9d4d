// Converts pixel formats, one tile a thread. The formats are checked at run time: all threads take the same branch, and
// the kernel is limited by memory.
#include "handlers/gpu/convert.h"

#include "handlers/gpu/image_launches.h"
#include "handlers/gpu/launch.cuh"

namespace millrace::handlers::gpu {
namespace {

__global__ void __launch_bounds__(kBlockWidth* kBlockHeight) convert(const __grid_constant__ Conversion conversion) {
  await_inputs();
  const uint32_t x = (blockIdx.x * kBlockWidth + threadIdx.x) * kTileWidth;
  const uint32_t y = (blockIdx.y * kBlockHeight + threadIdx.y) * kTileHeight;
  if (x < conversion.target.image.width && y < conversion.target.image.height) convert_tile(conversion, x, y);
}

} // namespace

const char* launch_convert(void* stream, const DevicePicture& source, const DevicePicture& target) {
  // Pictures of one format whose numbers mean the same are only copied, including the unused bits of p010.
  if (source.image.format == target.image.format && same_numbers(source.image, target.image))
    return launch_crop(stream, source, 0, 0, target);
  launch({tile_blocks(target.image, kTileWidth, kTileHeight), kBlock, 0, static_cast<cudaStream_t>(stream)}, convert,
         conversion_of(source, target));
  return launched();
}

} // namespace millrace::handlers::gpu
