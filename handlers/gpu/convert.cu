// Changes pixel formats: a tile a thread. Which formats they are is asked at run time: all threads go the same way, and
// what limits them is memory.
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
  // What is the same already keeps its bytes, also those of p010 that mean nothing.
  if (source.image.format == target.image.format && same_numbers(source.image, target.image))
    return launch_crop(stream, source, 0, 0, target);
  launch({tile_blocks(target.image, kTileWidth, kTileHeight), kBlock, 0, static_cast<cudaStream_t>(stream)}, convert,
         conversion_of(source, target));
  return launched();
}

} // namespace millrace::handlers::gpu
