// Memory and a texture on a device; each is freed with its object.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/volume/gpu/render_on_gpu.h"

namespace millrace::volume::gpu {

// Throws std::runtime_error with CUDA's words.
inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError(); // else the next kernel's launch would seem to have failed
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

// Device memory that is freed with it.
class Memory {
 public:
  Memory() = default;
  ~Memory() {
    for (void* const each : all_) cudaFree(each);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class T>
  T* take(size_t count) {
    void* taken = nullptr;
    check(cudaMalloc(&taken, count * sizeof(T)), "cudaMalloc");
    all_.push_back(taken);
    return static_cast<T*>(taken);
  }
  template <class T>
  T* take(const std::vector<T>& with) {
    T* const taken = take<T>(with.size());
    check(cudaMemcpy(taken, with.data(), with.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return taken;
  }

 private:
  std::vector<void*> all_;
};

// A texture and the surface to write it.
class VolumeTexture {
 public:
  explicit VolumeTexture(const VolumeShape& shape) {
    const cudaChannelFormatDesc voxel = shape.type == VoxelType::u8    ? cudaCreateChannelDesc<unsigned char>()
                                        : shape.type == VoxelType::u16 ? cudaCreateChannelDesc<unsigned short>()
                                                                       : cudaCreateChannelDesc<float>();
    const cudaExtent extent = {static_cast<size_t>(shape.width), static_cast<size_t>(shape.height),
                               static_cast<size_t>(shape.depth)};
    check(cudaMalloc3DArray(&array_, &voxel, extent, cudaArraySurfaceLoadStore), "cudaMalloc3DArray");
    try {
      cudaResourceDesc resource{};
      resource.resType = cudaResourceTypeArray;
      resource.res.array.array = array_;
      cudaTextureDesc how{};
      std::fill(std::begin(how.addressMode), std::end(how.addressMode), cudaAddressModeClamp);
      how.filterMode = cudaFilterModeLinear;
      how.readMode = shape.type == VoxelType::f32 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
      check(cudaCreateTextureObject(&texture_, &resource, &how, nullptr), "cudaCreateTextureObject");
      check(cudaCreateSurfaceObject(&surface_, &resource), "cudaCreateSurfaceObject");
    } catch (...) {
      free();
      throw;
    }
  }
  ~VolumeTexture() { free(); }
  VolumeTexture(const VolumeTexture&) = delete;
  VolumeTexture& operator=(const VolumeTexture&) = delete;

  cudaTextureObject_t texture() const { return texture_; }
  cudaSurfaceObject_t surface() const { return surface_; }

 private:
  void free() {
    if (surface_) cudaDestroySurfaceObject(surface_);
    if (texture_) cudaDestroyTextureObject(texture_);
    cudaFreeArray(array_);
  }

  cudaArray_t array_ = nullptr;
  cudaTextureObject_t texture_ = 0;
  cudaSurfaceObject_t surface_ = 0;
};

} // namespace millrace::volume::gpu
