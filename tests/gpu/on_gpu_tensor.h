// Bytes and pictures in device memory, for tests that call the kernels' tables without a runtime.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "handlers/gpu/library.h"
#include "handlers/image/picture.h"

namespace millrace::handlers::on_gpu {

inline void checked(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

constexpr uint8_t kPoison = 0xDB;           // what a kernel forgot to write
constexpr size_t kGuardBytes = 256;         // behind the bytes, to catch what writes too far
inline constexpr cudaStream_t kStream = {}; // the default one: copies wait for it

// Owns device memory. Not copied; every call is checked and throws.
class Bytes {
 public:
  explicit Bytes(size_t size) : size_(size) {
    checked(cudaMalloc(&data_, size + kGuardBytes));
    checked(cudaMemset(data_, kPoison, size + kGuardBytes));
  }
  Bytes(const void* from, size_t size) : Bytes(size) {
    if (size > 0) checked(cudaMemcpy(data_, from, size, cudaMemcpyHostToDevice));
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { cudaFree(data_); }

  void* data() const { return data_; }
  // Waits for all work; throws where a kernel failed or wrote behind the end.
  std::vector<uint8_t> download() const {
    checked(cudaDeviceSynchronize());
    std::vector<uint8_t> bytes(size_ + kGuardBytes);
    checked(cudaMemcpy(bytes.data(), data_, bytes.size(), cudaMemcpyDeviceToHost));
    for (size_t i = size_; i < bytes.size(); ++i)
      if (bytes[i] != kPoison) throw std::runtime_error("a kernel wrote behind the end of its memory");
    bytes.resize(size_);
    return bytes;
  }

 private:
  void* data_ = nullptr;
  size_t size_;
};

// A picture of the host with a twin in device memory.
class TwinPicture {
 public:
  explicit TwinPicture(const ImageView& from)
      : image_(from.value().as.image), bytes_(from.data(), static_cast<size_t>(from.header().extent_bytes)) {}
  gpu::DevicePicture device() const { return {image_, static_cast<uint8_t*>(bytes_.data())}; }
  // What the device made of it, into a picture of the same layout.
  void download(const ImageSpan& to) const {
    const std::vector<uint8_t> bytes = bytes_.download();
    std::memcpy(to.data(), bytes.data(), bytes.size());
  }

 private:
  mr_image image_;
  Bytes bytes_;
};

// Throws what a launch had to say.
inline void started(const char* sentence) {
  if (sentence) throw std::runtime_error(sentence);
}

} // namespace millrace::handlers::on_gpu
