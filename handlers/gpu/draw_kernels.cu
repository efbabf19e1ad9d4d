// Kernels of draw.boxes, draw.text and draw.waveform.
#include "handlers/gpu/draw_kernels.h"

namespace millrace::handlers::gpu {

const DrawKernels& draw_kernels() {
  static const DrawKernels kernels{};
  return kernels;
}

} // namespace millrace::handlers::gpu
