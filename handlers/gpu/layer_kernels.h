// Kernels of image.composite; see library.h.
#pragma once

#include <array>
#include <span>

#include "handlers/gpu/layer.h"
#include "handlers/gpu/library.h"
#include "handlers/gpu/planar_layer.h"

namespace millrace::handlers::gpu {

struct LayerKernels {
  // Lays layers, from the bottom upwards, over the background, which is a pixel of the canvas with its first channel
  // lowest. `background_opaque`: no pixel of the canvas is translucent. No layer's memory overlaps the canvas's. A
  // launch takes as many layers as fit a kernel's arguments, and reads each once.
  const char* (*compose)(void* stream, std::span<const Layer> layers, uint32_t background, bool background_opaque,
                         const DevicePicture& canvas);
  // The same on a canvas of nv12, i420 or p010; the background is red, green and blue.
  const char* (*compose_planes)(void* stream, std::span<const PlanarLayer> layers,
                                const std::array<uint8_t, 4>& background, const DevicePicture& canvas);
};

// The table of the CUDA module, defined in layer_kernels.cu.
const LayerKernels& layer_kernels();

} // namespace millrace::handlers::gpu
