// Kernels of image.composite.
#include "handlers/gpu/layer_kernels.h"

namespace millrace::handlers::gpu {

const LayerKernels& layer_kernels() {
  static const LayerKernels kernels{};
  return kernels;
}

} // namespace millrace::handlers::gpu
