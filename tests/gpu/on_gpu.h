// Memory and streams of a GPU for tests: every CUDA call is checked, and ends the test with its sentence.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "handlers/gpu/library.h"
#include "handlers/image/picture.h"

namespace millrace::handlers {

// Fills memory that a kernel has to write.
inline constexpr uint8_t kPoison = 0xdb;

inline void checked(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

class GpuStream {
 public:
  GpuStream() { checked(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~GpuStream() { cudaStreamDestroy(stream_); }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  operator cudaStream_t() const { return stream_; }
  void wait() const { checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

// Bytes in device memory, poison at first; what is done to them is done when a call returns, on any stream.
class GpuBytes {
 public:
  explicit GpuBytes(size_t count) : count_(count) {
    checked(cudaMalloc(&data_, count), "cudaMalloc");
    fill(kPoison);
  }
  ~GpuBytes() { cudaFree(data_); }
  GpuBytes(const GpuBytes&) = delete;
  GpuBytes& operator=(const GpuBytes&) = delete;

  uint8_t* data() const { return static_cast<uint8_t*>(data_); }
  size_t count() const { return count_; }
  void fill(uint8_t value) {
    checked(cudaMemset(data_, value, count_), "cudaMemset");
    checked(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  void upload(const void* from) {
    checked(cudaMemcpy(data_, from, count_, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
    checked(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  void download(void* to) const {
    checked(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    checked(cudaMemcpy(to, data_, count_, cudaMemcpyDeviceToHost), "cudaMemcpy from the device");
  }

 private:
  void* data_ = nullptr;
  size_t count_;
};

// A value in device memory.
template <class T>
class GpuValue {
 public:
  explicit GpuValue(const T& value) : bytes_(sizeof(T)) { set(value); }
  void set(const T& value) { bytes_.upload(&value); }
  const T* get() const { return reinterpret_cast<const T*>(bytes_.data()); }

 private:
  GpuBytes bytes_;
};

// A picture whose bytes are in device memory: those of another one, or all poison.
class GpuPicture {
 public:
  explicit GpuPicture(const Picture& picture) : shape_(picture), bytes_(size_of_bytes()) {
    bytes_.upload(picture.view().data());
  }
  GpuPicture(Pixel pixel, uint32_t width, uint32_t height) : shape_(pixel, width, height), bytes_(size_of_bytes()) {}

  GpuPicture& tag(uint32_t color, uint32_t range) {
    shape_.tag(color, range);
    return *this;
  }
  gpu::DevicePicture on_device() const { return {shape_.view().value().as.image, bytes_.data()}; }
  void poison() { bytes_.fill(kPoison); }
  Picture download() const {
    Picture picture = shape_;
    bytes_.download(picture.span().data());
    return picture;
  }

 private:
  size_t size_of_bytes() const { return shape_.view().header().extent_bytes; }

  Picture shape_;
  GpuBytes bytes_;
};

} // namespace millrace::handlers
