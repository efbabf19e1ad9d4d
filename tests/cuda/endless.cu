// A plugin whose kernel never ends, or touches memory that is not its own, from tick `at` on.
#include <cuda_runtime.h>
#include <millrace/handler.h>

namespace mr = millrace;

namespace {

// `go_on` is never written: the loop has no end that the compiler could see.
__global__ void never_end(volatile int* go_on) {
  while (*go_on == 0) {
  }
}
__global__ void write_wild() { *reinterpret_cast<volatile int*>(8) = 1; }

struct Endless final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video"};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  mr::Param<int> at{*this, "at", 3, "the tick", mr::at_least(0)};
  mr::Param<bool> wild{*this, "wild", false, "an illegal address instead"};

  void start() override {
    if (cudaMalloc(&go_on_, sizeof(int)) != cudaSuccess || cudaMemset(go_on_, 0, sizeof(int)) != cudaSuccess)
      throw std::runtime_error("no memory for a word");
  }
  void process(mr::Tick&, mr::Cpu&) { throw std::runtime_error("this handler is for a GPU"); }
  void process(mr::Tick& tick, mr::Cuda& cuda) {
    const mr::ImageView from = video(tick);
    const mr::ImageSpan to = out.allocate_like(tick, from);
    const auto stream = static_cast<cudaStream_t>(cuda.stream());
    if (static_cast<int64_t>(tick.index()) == *at) {
      if (*wild)
        write_wild<<<1, 1, 0, stream>>>();
      else
        never_end<<<1, 1, 0, stream>>>(go_on_);
    }
    const size_t bytes = size_t{from.width()} * mr::bytes_per_pixel(from.pixel()) * from.height();
    const cudaError_t error = cudaMemcpyAsync(to.row(0), from.row(0), bytes, cudaMemcpyDeviceToDevice, stream);
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
  }
  void stop() override { cudaFree(go_on_); } // waits for the device: nobody may ask for that once it is lost

 private:
  int* go_on_ = nullptr;
};

} // namespace

MILLRACE_HANDLER(Endless, "endless.kernel", "Never ends")
MILLRACE_PLUGIN("endless", "1.0.0")
