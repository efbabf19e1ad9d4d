// Kernels of test.pattern and of the handlers that make pictures from pictures (convert, resize, crop, flip, blur,
// adjust); see library.h.
//
// The arithmetic, and how close a result is to the CPU's, is described in painted.h, convert.h, resample_math.h,
// turn.h, blur.h and adjust.h. Sizes and formats are those that the CPU bodies take. Padding bytes are not changed.
// Pictures may lie at any address; rows that begin at multiples of 16 are fast.
#pragma once

#include "handlers/gpu/library.h"
#include "handlers/image/gaussian.h"
#include "handlers/image/resample.h"
#include "handlers/image/tone.h"
#include "handlers/image/turn.h"
#include "handlers/test/painting.h"

namespace millrace::handlers::gpu {

struct ImageKernels {
  // Paints picture `tick->index` with its number burnt in; `tick` is in device memory.
  const char* (*paint)(void* stream, Pattern pattern, const mr_device_tick* tick, const DevicePicture& target);
  // Converts to the format, color and range that the target is tagged with.
  const char* (*convert)(void* stream, const DevicePicture& source, const DevicePicture& target);
  const char* (*resize)(void* stream, const DevicePicture& source, const DevicePicture& target, ResizeMethod method);
  const char* (*turn)(void* stream, Turn turn, const DevicePicture& source, const DevicePicture& target);
  // Copies the part of the target's size that begins at (x, y).
  const char* (*crop)(void* stream, const DevicePicture& source, uint32_t x, uint32_t y, const DevicePicture& target);
  // `chroma_kernel` is for the chroma of nv12, i420 and p010.
  const char* (*blur)(void* stream, const DevicePicture& source, const DevicePicture& target,
                      const GaussianKernel& kernel, const GaussianKernel& chroma_kernel);
  const char* (*adjust)(void* stream, const ToneAdjuster& tone, const DevicePicture& source,
                        const DevicePicture& target);
};

// The table of the CUDA module, defined in image_kernels.cu.
const ImageKernels& image_kernels();

} // namespace millrace::handlers::gpu
