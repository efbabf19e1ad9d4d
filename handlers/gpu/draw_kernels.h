// Kernels of draw.boxes, draw.text and draw.waveform; see library.h.
#pragma once

#include "handlers/gpu/library.h"

namespace millrace::handlers::gpu {

struct DrawKernels {};

// The module's own, defined in draw_kernels.cu.
const DrawKernels& draw_kernels();

} // namespace millrace::handlers::gpu
