// Bytes and pictures in device memory, for tests that call the kernels' tables without a runtime.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "on_gpu.h"

namespace millrace::handlers::on_gpu {

constexpr size_t kGuardBytes = 256;         // behind the bytes, to catch what writes too far
inline constexpr cudaStream_t kStream = {}; // the default one: copies wait for it

// Device memory with a guard behind it, poison at first.
class Bytes {
 public:
  explicit Bytes(size_t size) : size_(size), bytes_(size + kGuardBytes) {}
  Bytes(const void* from, size_t size) : Bytes(size) {
    std::vector<uint8_t> guarded(size + kGuardBytes, kPoison);
    if (size > 0) std::memcpy(guarded.data(), from, size);
    bytes_.upload(guarded.data());
  }

  void* data() const { return bytes_.data(); }
  size_t size() const { return size_; }
  // Waits for all work; throws where a kernel failed or wrote behind the end.
  std::vector<uint8_t> download() const {
    std::vector<uint8_t> bytes(bytes_.count());
    bytes_.download(bytes.data());
    for (size_t i = size_; i < bytes.size(); ++i)
      if (bytes[i] != kPoison) throw std::runtime_error("a kernel wrote behind the end of its memory");
    bytes.resize(size_);
    return bytes;
  }

 private:
  size_t size_;
  GpuBytes bytes_;
};

// A picture of the host with a twin in device memory.
class TwinPicture {
 public:
  explicit TwinPicture(const ImageView& from)
      : image_(from.value().as.image), bytes_(from.data(), static_cast<size_t>(from.header().extent_bytes)) {}
  gpu::DevicePicture device() const { return {image_, static_cast<uint8_t*>(bytes_.data())}; }
  // Copies the result from the device into a picture of the same layout.
  void download(const ImageSpan& to) const {
    const std::vector<uint8_t> bytes = bytes_.download();
    std::memcpy(to.data(), bytes.data(), bytes.size());
  }

 private:
  mr_image image_;
  Bytes bytes_;
};

} // namespace millrace::handlers::on_gpu
