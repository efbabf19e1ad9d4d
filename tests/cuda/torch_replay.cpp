// See torch_replay.h.
#include "torch_replay.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

template <class Call>
auto or_abort(Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "libtorch: %s\n", error.what());
    std::abort();
  }
}

} // namespace

void* torch_replay_stream(int device) {
  return or_abort([&]() -> void* {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    const c10::cuda::CUDAStream stream =
        c10::cuda::getStreamFromPool(/*isHighPriority=*/false, static_cast<c10::DeviceIndex>(device));
    c10::cuda::setCurrentCUDAStream(stream);
    return stream.stream();
  });
}

void* torch_replay_capture(void (*record)(void* with), void* with) {
  return or_abort([&]() -> void* {
    auto* const graph = new at::cuda::CUDAGraph;
    graph->capture_begin();
    record(with);
    graph->capture_end();
    return graph;
  });
}

void torch_replay_launch(void* graph) {
  or_abort([&] { static_cast<at::cuda::CUDAGraph*>(graph)->replay(); });
}

void* torch_replay_nearest(const float* places, int count, int k, int times) {
  return or_abort([&]() -> void* {
    const c10::InferenceMode no_gradients;
    const at::Tensor points = at::from_blob(const_cast<float*>(places), {count, 2}, at::device(at::kCUDA));
    const auto find = [&] { return std::get<1>(at::topk(at::cdist(points, points), k + 1, -1, /*largest=*/false)); };
    find(); // loads libraries, which a capture should not
    auto* const graph = new at::cuda::CUDAGraph;
    graph->capture_begin();
    static at::Tensor found; // the graph writes there
    for (int n = 0; n < times; ++n) found = find();
    graph->capture_end();
    return graph;
  });
}
