// The table of the picture kernels.
#include "handlers/gpu/image_kernels.h"

#include "handlers/gpu/image_launches.h"

namespace millrace::handlers::gpu {

const ImageKernels& image_kernels() {
  static const ImageKernels kernels{&launch_paint, &launch_convert, &launch_resize, &launch_turn,
                                    &launch_crop,  &launch_blur,    &launch_adjust};
  return kernels;
}

} // namespace millrace::handlers::gpu
