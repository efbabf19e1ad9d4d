// Times of captured graphs of a few launches.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/gpu/on_gpu.h"

namespace millrace::test {

inline constexpr uint32_t kReplays = 250, kWarmUp = 20, kLong = 33;

// Enqueues a launch on the memory of set `i`.
using Launch = std::function<const char*(cudaStream_t, size_t i)>;

class Replay {
 public:
  // Captures so many launches in a row. Launch n uses the set (first + n) mod `sets`.
  Replay(cudaStream_t stream, const Launch& launch, size_t first, uint32_t launches, size_t sets) : stream_(stream) {
    cudaGraph_t graph;
    handlers::checked(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (uint32_t n = 0; n < launches; ++n) handlers::gpu::check(launch(stream, (first + n) % sets));
    handlers::checked(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    handlers::checked(cudaGraphInstantiate(&exec_, graph, 0), "cudaGraphInstantiate");
    handlers::checked(cudaGraphDestroy(graph), "cudaGraphDestroy");
    for (cudaEvent_t& event : events_) handlers::checked(cudaEventCreate(&event), "cudaEventCreate");
  }
  ~Replay() {
    cudaGraphExecDestroy(exec_);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  double us() {
    float ms = 0;
    handlers::checked(cudaEventRecord(events_[0], stream_), "cudaEventRecord");
    handlers::checked(cudaGraphLaunch(exec_, stream_), "cudaGraphLaunch");
    handlers::checked(cudaEventRecord(events_[1], stream_), "cudaEventRecord");
    handlers::checked(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
    handlers::checked(cudaEventElapsedTime(&ms, events_[0], events_[1]), "cudaEventElapsedTime");
    return 1000.0 * ms;
  }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t exec_ = nullptr;
  cudaEvent_t events_[2] = {};
};

inline double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + static_cast<ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

// The time that one more launch adds to a graph: the replays' own cost is in both and cancels out.
inline double marginal_us(const Launch& launch, size_t sets) {
  const handlers::GpuStream stream;
  handlers::gpu::check(launch(stream, 0)); // loads the kernel, which a capture should not
  stream.wait();
  std::vector<std::unique_ptr<Replay>> one;
  for (size_t s = 0; s < sets; ++s) one.push_back(std::make_unique<Replay>(stream, launch, s, 1, sets));
  Replay many(stream, launch, 0, kLong, sets);
  std::vector<double> one_us, many_us;
  for (uint32_t n = 0; n < kWarmUp + kReplays; ++n) {
    const double a = one[n % sets]->us(), b = many.us();
    if (n < kWarmUp) continue;
    one_us.push_back(a);
    many_us.push_back(b);
  }
  return (median(many_us) - median(one_us)) / (kLong - 1);
}

// Times of a graph of one launch, as events see it: kReplays of them, the shortest first.
inline std::vector<double> times_of_one(const Launch& launch) {
  const handlers::GpuStream stream;
  handlers::gpu::check(launch(stream, 0));
  stream.wait();
  Replay one(stream, launch, 0, 1, 1);
  std::vector<double> times;
  for (uint32_t n = 0; n < kWarmUp + kReplays; ++n) {
    const double took = one.us();
    if (n >= kWarmUp) times.push_back(took);
  }
  std::sort(times.begin(), times.end());
  return times;
}

} // namespace millrace::test
