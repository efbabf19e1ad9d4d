// Kernels of image.composite; see library.h.
#pragma once

#include "handlers/gpu/library.h"

namespace millrace::handlers::gpu {

struct LayerKernels {};

// The module's own, defined in layer_kernels.cu.
const LayerKernels& layer_kernels();

} // namespace millrace::handlers::gpu
