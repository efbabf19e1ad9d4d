// Gives libtorch a stream and memory of the runtime's on a GPU; see gpu.h.
//
// libtorch takes memory in large pieces, cuts them and keeps them. A pool of its own for each network takes its pieces
// from here, and no tensor outside of within() lies in it.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/MemPool.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "plugins/model/torch/gpu.h"

namespace millrace::model::libtorch {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

// The pieces that a pool takes: of memory that was given, or of the GPU's.
class Pieces {
 public:
  explicit Pieces(const GpuMemory& given) : given_(given) {}

  // Null if there is no room.
  void* take(size_t bytes) {
    constexpr uint64_t kAligned = 512; // as cudaMalloc does and libtorch expects
    const uint64_t begin = used_, end = begin + (bytes + kAligned - 1) / kAligned * kAligned;
    void* piece = nullptr;
    if (!given_.memory) {
      if (cudaMalloc(&piece, bytes) != cudaSuccess) return (void)cudaGetLastError(), nullptr;
    } else if (end <= given_.bytes) {
      piece = static_cast<std::byte*>(given_.memory) + begin;
    }
    if (piece) used_ = end;
    return piece;
  }
  // Given memory goes back as a whole, to whoever gave it. A pool gives pieces back at its end, or when it has no
  // room.
  void give_back(void* piece) const {
    if (!given_.memory) (void)cudaFree(piece);
  }
  uint64_t used() const { return used_; }

 private:
  const GpuMemory given_;
  std::atomic<uint64_t> used_ = 0;
};

c10::DeviceIndex device_of(const GpuMemory& given) {
  cudaPointerAttributes attributes{};
  if (given.memory) C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, given.memory));
  return static_cast<c10::DeviceIndex>(attributes.device);
}

class GpuOfTorch final : public Gpu {
 public:
  explicit GpuOfTorch(const GpuMemory& given)
      : pieces_(std::make_shared<Pieces>(given)),
        device_(device_of(given)),
        stream_(given.memory ? c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(given.stream), device_)
                             : c10::cuda::getStreamFromPool(false, device_)) {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    const c10::cuda::CUDAGuard here(device_);
    pool_ = std::make_unique<at::cuda::MemPool>(torch::cuda::CUDAPluggableAllocator::createCustomAllocator(
        [pieces = pieces_](size_t bytes, int, cudaStream_t) { return pieces->take(bytes); },
        [pieces = pieces_](void* piece, size_t, int, cudaStream_t) { pieces->give_back(piece); }));
  }
  ~GpuOfTorch() override {
    // A device that is lost gives no answer, or an error to each call. What libtorch has there stays as it is.
    if (is_done())
      end_thread();
    else
      (void)pool_.release();
  }
  GpuOfTorch(const GpuOfTorch&) = delete;

  c10::Device device() const override { return {c10::DeviceType::CUDA, device_}; }

  void within(const std::function<void()>& call) override {
    const c10::cuda::CUDAStreamGuard on_stream(stream_);
    const auto is_ours = [ours = stream_.stream()](cudaStream_t stream) { return stream == ours; };
    caching::beginAllocateToPool(device_, pool_->id(), is_ours);
    struct End {
      GpuOfTorch& gpu;
      ~End() {
        caching::endAllocateToPool(gpu.device_, gpu.pool_->id());
        caching::releasePool(gpu.device_, gpu.pool_->id()); // as often as it began
      }
    } const end{*this};
    call();
  }

  // cuBLAS has work space by thread and stream.
  void end_thread() override {
    const c10::cuda::CUDAGuard here(device_);
    (void)cudaStreamSynchronize(stream_);
    at::cuda::clearCublasWorkspaces();
  }

  uint64_t bytes_used() const override { return pieces_->used(); }

 private:
  // True once the stream has done its work; false if that has failed, or is not over after a second.
  bool is_done() const {
    using namespace std::chrono_literals;
    constexpr int kLooks = 1000;
    cudaError_t status = cudaErrorNotReady;
    for (int look = 0; look < kLooks && status == cudaErrorNotReady; ++look) {
      if (look > 0) std::this_thread::sleep_for(1ms);
      status = cudaStreamQuery(stream_);
    }
    return status == cudaSuccess;
  }

  const std::shared_ptr<Pieces> pieces_; // the pool's allocator has them too
  const c10::DeviceIndex device_;
  const c10::cuda::CUDAStream stream_;
  std::unique_ptr<at::cuda::MemPool> pool_;
};

} // namespace

bool has_gpu() { return c10::cuda::device_count() > 0; }

std::unique_ptr<Gpu> make_gpu(const GpuMemory& given) { return std::make_unique<GpuOfTorch>(given); }

} // namespace millrace::model::libtorch
