// A fit on a GPU: enqueues its kernels, and decides nothing on the host. This header needs no CUDA.
#pragma once

#include <cstdint>
#include <memory>

#include "plugins/codebook/gpu/give_steps.h"
#include "plugins/codebook/gpu/resident.h"

namespace millrace::codebook::gpu {

enum class ElementType { f16, bf16, f32 };

// Addresses are in device memory, but for the outputs that lie on the host.
struct FitCall {
  Sizes sizes;
  FitSettings settings;
  Metric metric = Metric::l2;
  BadRows bad = BadRows::refuse;
  const void* vectors = nullptr; // [vectors, dimensions]
  ElementType type = ElementType::f16;
  const void* given = nullptr; // [anchors, dimensions], for Start::given
  ElementType given_type = ElementType::f16;
  void* scratch = nullptr; // has scratch_bytes(); no other fit is under way there
  Outputs to;
};

uint64_t scratch_bytes(const Sizes& sizes);

// Says why the iterations are enqueued one after the other, and not as a loop on the device; null: they are a loop.
const char* why_unrolled();

// Belongs to one device, which is current when it is made and destroyed.
class FitOnGpu {
 public:
  FitOnGpu();
  ~FitOnGpu();
  // Enqueues a fit on the stream (cudaStream_t), which may be captured. Throws std::runtime_error with CUDA's words.
  void enqueue(void* stream, const FitCall& call);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace millrace::codebook::gpu
