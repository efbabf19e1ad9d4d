// Kernels of image.normalize and image.rois.
#include "handlers/gpu/tensor_kernels.h"

namespace millrace::handlers::gpu {

const TensorKernels& tensor_kernels() {
  static const TensorKernels kernels{};
  return kernels;
}

} // namespace millrace::handlers::gpu
