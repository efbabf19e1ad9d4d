// Kernels of test.pattern and the handlers of pictures: convert, resize, crop, flip, blur.
#include "handlers/gpu/image_kernels.h"

namespace millrace::handlers::gpu {

const ImageKernels& image_kernels() {
  static const ImageKernels kernels{};
  return kernels;
}

} // namespace millrace::handlers::gpu
