// The memory of pictures on a GPU, as kernels see it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "millrace/payload/view.h"
#include "plugins/volume/contrast.h"
#include "plugins/volume/gpu/render_on_gpu.h"
#include "plugins/volume/march.h"
#include "plugins/volume/sight.h"
#include "plugins/volume/voxels.h"

namespace millrace::volume::gpu {

inline constexpr uint32_t kMapBytes = 3 * 256;

struct Name {
  uint8_t bytes[16]; // ends with a zero
};

// Values between voxels by a texture, with weights of eight bits.
struct Texture {
  cudaTextureObject_t object;
  float scale; // whole numbers are read as parts of their greatest
  Vector extent;
  bool is_whole;

  __device__ Vector size() const { return extent; }
  __device__ bool has_no_negatives() const { return is_whole; }
  __device__ float value(Vector p) const { return scale * tex3D<float>(object, p.x, p.y, p.z); }
};

// A kernel's argument: what stays from call to call.
struct Room {
  VolumeShape shape;
  cudaSurfaceObject_t surface = 0; // the texture's, to write to
  Texture texture{};
  int32_t across = 0, down = 0, deep = 0; // bricks
  float* greatest = nullptr;              // [deep, down, across]
  Contrast* contrast = nullptr;
  uint32_t* histogram = nullptr;       // [ViewControl::kParts]
  const uint8_t* colours = nullptr;    // [maps, kMapBytes]
  const Name* names = nullptr;         // the modes', then the maps'
  const ViewControl* offers = nullptr; // without a histogram
  uint32_t modes = 0, maps = 0, offer_count = 0;
  uint32_t contrast_offer = 0;                 // the one with the histogram
  float histogram_low = 0, histogram_high = 1; // parts of the contrast
  Wanted wanted{};
  uint32_t colour_map = 0; // the parameter's
  Sight* sight = nullptr;
};

template <class Number>
__device__ Voxels<Number> voxels_of(const Room& room, const RenderCall& call) {
  return {static_cast<const Number*>(call.volume), room.shape.width, room.shape.height, room.shape.depth};
}

__device__ inline bool is_known(const RenderCall& call) {
  return call.known->data == call.volume && call.known->pts_ns == call.volume_value->header.pts_ns;
}

} // namespace millrace::volume::gpu
