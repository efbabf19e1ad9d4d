// The functions of the table ImageKernels, each defined in the file of its kernels.
#pragma once

#include "handlers/gpu/image_kernels.h"

namespace millrace::handlers::gpu {

const char* launch_paint(void* stream, Pattern pattern, const mr_device_tick* tick, const DevicePicture& target);
const char* launch_convert(void* stream, const DevicePicture& source, const DevicePicture& target);
const char* launch_resize(void* stream, const DevicePicture& source, const DevicePicture& target, ResizeMethod method);
const char* launch_turn(void* stream, Turn turn, const DevicePicture& source, const DevicePicture& target);
const char* launch_crop(void* stream, const DevicePicture& source, uint32_t x, uint32_t y, const DevicePicture& target);
const char* launch_blur(void* stream, const DevicePicture& source, const DevicePicture& target,
                        const GaussianKernel& kernel, const GaussianKernel& chroma_kernel);
const char* launch_adjust(void* stream, const ToneAdjuster& tone, const DevicePicture& source,
                          const DevicePicture& target);

} // namespace millrace::handlers::gpu
