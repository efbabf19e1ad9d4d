// Kernels of image.normalize and image.rois; see library.h.
#pragma once

#include "handlers/gpu/library.h"

namespace millrace::handlers::gpu {

struct TensorKernels {};

// The module's own, defined in tensor_kernels.cu.
const TensorKernels& tensor_kernels();

} // namespace millrace::handlers::gpu
