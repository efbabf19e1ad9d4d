// Loops inside a tick: a body that runs on the device again and again until a kernel ends it. Included by launch.cuh.
//
//     struct Word { millrace::LoopWord loop; … }; // in scratch memory
//     millrace::Loop loop_;                       // a member beside the handler's kernels
//     …
//     error = millrace::repeat(stream, loop_, &word->loop, 50, [&](cudaStream_t round) {
//       return millrace::launch({blocks, threads, 0, round}, step, word, …);
//     });
//
//     __global__ void step(Word* word, …) {
//       millrace::await_inputs();
//       if (millrace::is_over(&word->loop)) return;
//       …
//       if (converged) millrace::end_loop(&word->loop); // by one thread; this round is run to its end
//     }
//
// In a capture the loop is one WHILE node of the graph. On a stream that is not captured, repeat() captures it into a
// graph of its own, which is made once; later calls give that graph new arguments. Where there are no such nodes
// (before CUDA 13, or MILLRACE_CUDA_UNROLL=1 in the environment), the rounds are enqueued one after the other,
// `at_most` of them. So each kernel of the body asks is_over(), of all loops that it is in, and then does nothing.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace millrace {

// In device memory, one for each loop. repeat() sets it.
struct LoopWord {
  uint32_t ends;    // a kernel has ended the loop; the round is still run to its end
  uint32_t is_over; // no round is run any more
  uint32_t rounds;  // that were run; kernels after the loop may read it
};

// Called on the device. Ends the loop after this round.
__device__ inline void end_loop(LoopWord* loop) { loop->ends = 1; }
// Called on the device, by each kernel of the body: true if the kernel has nothing to do.
__device__ inline bool is_over(const LoopWord* loop) { return loop->is_over != 0; }

class Loop;

// Enqueues up to `at_most` rounds. `body` enqueues one round on the stream that it is given, and returns the error; it
// is called at least once, and with other arguments enqueues the same kernels. Kernels that were enqueued before and
// after the loop run before and after it. `loop` belongs to this loop alone.
template <class Body>
cudaError_t repeat(cudaStream_t stream, Loop& loop, LoopWord* word, uint32_t at_most, Body&& body);

// Says why repeat() enqueues all rounds one after the other; null: it does not, or there is no driver. A handler may
// log it in configure(): then the plan notes it.
inline const char* why_loops_are_unrolled() {
#if CUDART_VERSION >= 13000
  const char* const asked = std::getenv("MILLRACE_CUDA_UNROLL");
  if (asked && std::string_view(asked) == "1") return "MILLRACE_CUDA_UNROLL is 1";
  constexpr int kWithWhileNodes = 12040;
  int driver = 0;
  const bool is_known = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
  return is_known && driver < kWithWhileNodes ? "the driver is older than CUDA 12.4" : nullptr;
#else
  return "this was built with a CUDA before 13";
#endif
}

namespace launch_detail {

// Templates, because a header may define them in several files.
template <class Handle>
__global__ void begin_loop(LoopWord* loop, uint32_t at_most, Handle handle, bool is_node) {
  await_inputs();
  *loop = {0, at_most == 0, 0};
#if CUDART_VERSION >= 13000
  if (is_node) cudaGraphSetConditional(handle, at_most > 0);
#endif
}

template <class Handle>
__global__ void end_round(LoopWord* loop, uint32_t at_most, Handle handle, bool is_node) {
  await_inputs();
  if (is_over(loop)) return;
  ++loop->rounds;
  if (!loop->ends && loop->rounds < at_most) return;
  loop->is_over = 1;
#if CUDART_VERSION >= 13000
  if (is_node) cudaGraphSetConditional(handle, 0);
#endif
}

} // namespace launch_detail

// The host's part of a loop: its streams for captures, and its own graph. Destroyed before the device is given up, as
// in Handler::stop(); the device is current then, and nothing of the loop is under way.
class Loop {
 public:
  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    if (graph_) cudaGraphExecDestroy(graph_);
    if (rounds_) cudaStreamDestroy(rounds_);
    if (own_) cudaStreamDestroy(own_);
  }

 private:
  template <class Body>
  friend cudaError_t repeat(cudaStream_t stream, Loop& loop, LoopWord* word, uint32_t at_most, Body&& body);

  template <class Body>
  cudaError_t unroll(cudaStream_t stream, LoopWord* word, uint32_t at_most, Body& body) {
    cudaError_t error =
        launch({1, 1, 0, stream}, launch_detail::begin_loop<uint64_t>, word, at_most, uint64_t{0}, false);
    for (uint32_t round = 0; round < at_most && error == cudaSuccess; ++round) {
      error = body(stream);
      if (error == cudaSuccess)
        error = launch({1, 1, 0, stream}, launch_detail::end_round<uint64_t>, word, at_most, uint64_t{0}, false);
    }
    return error;
  }

#if CUDART_VERSION >= 13000
  static cudaError_t make(cudaStream_t& stream) {
    return stream ? cudaSuccess : cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  }

  // Adds the loop to the graph that is being captured on the stream.
  template <class Body>
  cudaError_t add_node(cudaStream_t stream, LoopWord* word, uint32_t at_most, Body& body) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr);
    cudaGraphConditionalHandle handle{};
    if (error == cudaSuccess)
      error = cudaGraphConditionalHandleCreate(&handle, graph, at_most > 0, cudaGraphCondAssignDefault);
    if (error == cudaSuccess)
      error =
          launch({1, 1, 0, stream}, launch_detail::begin_loop<cudaGraphConditionalHandle>, word, at_most, handle, true);
    cudaGraphNodeParams loop{};
    loop.type = cudaGraphNodeTypeConditional;
    loop.conditional.handle = handle;
    loop.conditional.type = cudaGraphCondTypeWhile;
    loop.conditional.size = 1;
    if (error == cudaSuccess) error = append(stream, loop);
    if (error == cudaSuccess) error = make(rounds_);
    if (error == cudaSuccess)
      error = cudaStreamBeginCaptureToGraph(rounds_, loop.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                            cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) return error;
    error = body(rounds_);
    if (error == cudaSuccess)
      error =
          launch({1, 1, 0, rounds_}, launch_detail::end_round<cudaGraphConditionalHandle>, word, at_most, handle, true);
    const cudaError_t ended = cudaStreamEndCapture(rounds_, &graph);
    return error == cudaSuccess ? ended : error;
  }

  // Adds a node after all that the stream has captured; what is captured from now on comes after it.
  static cudaError_t append(cudaStream_t stream, cudaGraphNodeParams& made) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* before = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    size_t count = 0;
    cudaGraphNode_t node = nullptr;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &before, &edges, &count);
    if (error == cudaSuccess) error = cudaGraphAddNode(&node, graph, before, edges, count, &made);
    if (error == cudaSuccess)
      error = cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies);
    return error;
  }

  // Launches the loop as a graph of its own.
  template <class Body>
  cudaError_t launch_own(cudaStream_t stream, LoopWord* word, uint32_t at_most, Body& body) {
    cudaError_t error = make(own_);
    if (error == cudaSuccess) error = cudaStreamBeginCapture(own_, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) return error;
    error = add_node(own_, word, at_most, body);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(own_, &graph);
    if (error == cudaSuccess) error = ended;
    cudaGraphExecUpdateResultInfo update{};
    if (error == cudaSuccess && !graph_) {
      error = cudaGraphInstantiate(&graph_, graph, 0);
    } else if (error == cudaSuccess && cudaGraphExecUpdate(graph_, graph, &update) != cudaSuccess) {
      (void)cudaGetLastError();
      updates_ = false; // its earlier launches may be under way, so it stays
    }
    if (graph) cudaGraphDestroy(graph);
    if (error != cudaSuccess) return error;
    return updates_ ? cudaGraphLaunch(graph_, stream) : unroll(stream, word, at_most, body);
  }
#endif

  cudaStream_t own_ = nullptr, rounds_ = nullptr; // captured, never run on
  cudaGraphExec_t graph_ = nullptr;
  bool updates_ = true; // the own graph takes new arguments
};

template <class Body>
cudaError_t repeat(cudaStream_t stream, Loop& loop, LoopWord* word, uint32_t at_most, Body&& body) {
#if CUDART_VERSION >= 13000
  if (!why_loops_are_unrolled()) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (const cudaError_t error = cudaStreamIsCapturing(stream, &status); error != cudaSuccess) return error;
    if (status == cudaStreamCaptureStatusActive) return loop.add_node(stream, word, at_most, body);
    if (loop.updates_) return loop.launch_own(stream, word, at_most, body);
  }
#endif
  return loop.unroll(stream, word, at_most, body);
}

} // namespace millrace
