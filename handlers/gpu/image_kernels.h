// Kernels of test.pattern and the handlers of pictures: convert, resize, crop, flip, blur; see library.h.
//
// What a result is, and how near it is to the CPU's, is said beside the arithmetic: painted.h, convert.h,
// resample_math.h, turn.h and blur.h. Sizes and formats are what the CPU bodies take. Bytes of padding are left as they
// are. Pictures may lie at any address; rows that begin at multiples of 16 are fast.
#pragma once

#include "handlers/gpu/library.h"
#include "handlers/image/gaussian.h"
#include "handlers/image/resample.h"
#include "handlers/image/turn.h"
#include "handlers/test/painting.h"

namespace millrace::handlers::gpu {

struct ImageKernels {
  // Picture `tick->index`, with its number burnt in; `tick` is in device memory.
  const char* (*paint)(void* stream, Pattern pattern, const mr_device_tick* tick, const DevicePicture& target);
  // The target's format, color and range are what it is tagged with.
  const char* (*convert)(void* stream, const DevicePicture& source, const DevicePicture& target);
  const char* (*resize)(void* stream, const DevicePicture& source, const DevicePicture& target, ResizeMethod method);
  const char* (*turn)(void* stream, Turn turn, const DevicePicture& source, const DevicePicture& target);
  // The target's size from (x, y) on.
  const char* (*crop)(void* stream, const DevicePicture& source, uint32_t x, uint32_t y, const DevicePicture& target);
  // Chroma of nv12 and i420 has a kernel of its own.
  const char* (*blur)(void* stream, const DevicePicture& source, const DevicePicture& target,
                      const GaussianKernel& kernel, const GaussianKernel& chroma_kernel);
};

// The module's own, defined in image_kernels.cu.
const ImageKernels& image_kernels();

} // namespace millrace::handlers::gpu
