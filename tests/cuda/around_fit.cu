// A plugin with one handler that gives a fit its vectors and one that takes its labels, each with a body for a GPU.
#include <cuda_runtime.h>
#include <millrace/handler.h>
#include <millrace/launch.cuh>

namespace mr = millrace;

namespace {

constexpr uint16_t kSign = 0x8000; // of a number of half precision

__global__ void turn_around(uint16_t* to, const uint16_t* from, uint64_t count) {
  mr::await_inputs();
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count; i += uint64_t{gridDim.x} * blockDim.x)
    to[i] = from[i] ^ kSign;
}
__global__ void add_one(uint32_t* to, const uint32_t* from, uint64_t count) {
  mr::await_inputs();
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count; i += uint64_t{gridDim.x} * blockDim.x)
    to[i] = from[i] + 1;
}
void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

struct Before final : mr::Handler {
  mr::Input<mr::Tensor> in{*this, "in", mr::dtypes<mr::Float16>(), mr::rank(2)};
  mr::Output<mr::Tensor> out{*this, "out", mr::like(in)};

  Before() { capturable(); }
  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::TensorView from = in(tick);
    const std::span<uint16_t> to = numbers(tick, from);
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<uint16_t>(reinterpret_cast<const uint16_t*>(from.data())[i] ^ kSign);
  }
  void process(mr::Tick& tick, mr::Cuda& cuda) {
    const mr::TensorView from = in(tick);
    const std::span<uint16_t> to = numbers(tick, from);
    require(mr::launch({64, 256, 0, static_cast<cudaStream_t>(cuda.stream())}, turn_around, to.data(),
                       reinterpret_cast<const uint16_t*>(from.data()), uint64_t{to.size()}));
  }

 private:
  std::span<uint16_t> numbers(mr::Tick& tick, const mr::TensorView& from) {
    const mr::TensorSpan to = out.allocate(tick, mr::dtype_of<mr::Float16>(), from.shape());
    return {reinterpret_cast<uint16_t*>(to.data()), static_cast<size_t>(to.element_count())};
  }
};

struct After final : mr::Handler {
  mr::Input<mr::Tensor> in{*this, "in", mr::dtypes<uint32_t>(), mr::rank(1)};
  mr::Output<mr::Tensor> out{*this, "out", mr::like(in)};

  After() { capturable(); }
  void process(mr::Tick& tick, mr::Cpu&) {
    const std::span<const uint32_t> from = in(tick).elements<uint32_t>();
    const std::span<uint32_t> to = labels(tick, in(tick));
    for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] + 1;
  }
  void process(mr::Tick& tick, mr::Cuda& cuda) {
    const mr::TensorView from = in(tick);
    const std::span<uint32_t> to = labels(tick, from);
    require(mr::launch({64, 256, 0, static_cast<cudaStream_t>(cuda.stream())}, add_one, to.data(),
                       reinterpret_cast<const uint32_t*>(from.data()), uint64_t{to.size()}));
  }

 private:
  std::span<uint32_t> labels(mr::Tick& tick, const mr::TensorView& from) {
    return out.allocate(tick, mr::dtype_of<uint32_t>(), from.shape()).elements<uint32_t>();
  }
};

} // namespace

MILLRACE_HANDLER(Before, "around.before", "Turns vectors around")
MILLRACE_HANDLER(After, "around.after", "Adds one to each label")
MILLRACE_PLUGIN("around_fit", "1.0.0")
