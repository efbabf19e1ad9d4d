// A GPU as libtorch computes on it for one network: on a stream of the runtime's and in memory that the plan counts.
// on_gpu.cpp implements it for a libtorch with CUDA, without_gpu.cpp for one without.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "plugins/model/engine.h"

namespace millrace::model::libtorch {

class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual c10::Device device() const = 0;
  // Calls the function. Work that it gives to the GPU goes to the stream, and tensors that it makes there lie in the
  // memory.
  virtual void within(const std::function<void()>& call) = 0;
  // Gives back what libraries keep for the calling thread, once its work is done.
  virtual void end_thread() = 0;
  // The bytes of the memory that were taken so far.
  virtual uint64_t bytes_used() const = 0;
};

// True if this libtorch computes on GPUs, and one is here.
bool has_gpu();
// Memory of the GPU is taken as it is needed if `given.memory` is null, on a stream of its own.
std::unique_ptr<Gpu> make_gpu(const GpuMemory& given);

} // namespace millrace::model::libtorch
