// Mirrors, turns and cuts pictures with one launch for each plane, or one for all planes if rows are only copied.
#include "handlers/gpu/turn.h"

#include "handlers/gpu/image_launches.h"
#include "handlers/gpu/launch.cuh"

namespace millrace::handlers::gpu {
namespace {

struct RowCopies {
  RowCopy plane[MR_PLANES_MAX];
};

__global__ void copy_rows(const __grid_constant__ RowCopies copies) {
  await_inputs();
  const RowCopy& copy = copies.plane[blockIdx.z];
  const uint32_t x = (blockIdx.x * kBlockWidth + threadIdx.x) * 16, y = blockIdx.y * kBlockHeight + threadIdx.y;
  if (x < copy.bytes && y < copy.rows) copy_sixteen(copy, x, y);
}

template <uint32_t kBytes>
__global__ void mirror(const __grid_constant__ PlaneTurn plane) {
  await_inputs();
  const uint32_t x = (blockIdx.x * kBlockWidth + threadIdx.x) * 4, y = blockIdx.y * kBlockHeight + threadIdx.y;
  if (x < plane.width && y < plane.height) mirror_four<kBytes>(plane, x, y);
}

// A block has as many threads as a square has groups of four samples.
template <uint32_t kBytes>
__global__ void swap_sides(const __grid_constant__ PlaneTurn plane) {
  await_inputs();
  __shared__ TurnSquare square;
  const uint32_t left = blockIdx.x * kSquare, top = blockIdx.y * kSquare;
  for (uint32_t column = threadIdx.y; column < kSquare; column += kBlockHeight)
    load_turned<kBytes>(plane, left, top, column, threadIdx.x, square);
  __syncthreads();
  const uint32_t thread = threadIdx.y * kBlockWidth + threadIdx.x;
  store_turned<kBytes>(plane, left, top, thread % 8 * 4, thread / 8, square);
}
static_assert(kBlockWidth == kSquare && kBlockWidth * kBlockHeight == kSquare * kSquare / 4);

template <uint32_t kBytes>
void launch_plane(cudaStream_t stream, const PlaneTurn& plane) {
  if (swaps_sides(plane.turn)) {
    const dim3 squares((plane.width + kSquare - 1) / kSquare, (plane.height + kSquare - 1) / kSquare);
    launch({squares, kBlock, 0, stream}, swap_sides<kBytes>, plane);
  } else {
    launch({blocks_for((plane.width + 3) / 4, plane.height), kBlock, 0, stream}, mirror<kBytes>, plane);
  }
}

// Copies from (x, y) of the source on; `upwards` reads the source's rows from the bottom up.
const char* launch_copy(void* stream, const DevicePicture& source, uint32_t x, uint32_t y, const DevicePicture& target,
                        bool upwards) {
  RowCopies copies{};
  uint32_t bytes = 0; // bytes of the longest row, which is that of chroma pairs if the width is odd
  for (uint32_t p = 0; p < target.image.plane_count; ++p) {
    copies.plane[p] = row_copy(source, x, y, target, p, upwards);
    bytes = larger(bytes, copies.plane[p].bytes);
  }
  const dim3 blocks = blocks_for((bytes + 15) / 16, copies.plane[0].rows, target.image.plane_count);
  launch({blocks, kBlock, 0, static_cast<cudaStream_t>(stream)}, copy_rows, copies);
  return launched();
}

} // namespace

const char* launch_crop(void* stream, const DevicePicture& source, uint32_t x, uint32_t y,
                        const DevicePicture& target) {
  return launch_copy(stream, source, x, y, target, false);
}

const char* launch_turn(void* stream, Turn turn, const DevicePicture& source, const DevicePicture& target) {
  if (turn == Turn::vertical) return launch_copy(stream, source, 0, 0, target, true);
  const Pixel pixel = static_cast<Pixel>(source.image.format);
  const auto on = static_cast<cudaStream_t>(stream);
  for (uint32_t p = 0; p < target.image.plane_count; ++p) {
    const PlaneTurn plane = plane_turn(turn, source, target, p);
    by_sample_bytes(sample_bytes(pixel, p), [&](auto bytes) { launch_plane<bytes>(on, plane); });
  }
  return launched();
}

} // namespace millrace::handlers::gpu
