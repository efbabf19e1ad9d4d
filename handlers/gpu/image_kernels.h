// Kernels of test.pattern and the handlers of pictures: convert, resize, crop, flip, blur; see library.h.
#pragma once

#include "handlers/gpu/library.h"

namespace millrace::handlers::gpu {

struct ImageKernels {};

// The module's own, defined in image_kernels.cu.
const ImageKernels& image_kernels();

} // namespace millrace::handlers::gpu
