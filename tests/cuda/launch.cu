// <millrace/launch.cuh>: which kernels come up early, and that what they read is there.
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <millrace/launch.cuh>

#include <vector>

namespace millrace::test {
namespace {

constexpr int64_t kSlowCycles = 400'000; // some 200 µs

__global__ void write_late(int64_t* to, int64_t value) {
  await_inputs();
  const long long until = clock64() + kSlowCycles;
  while (clock64() < until) {
  }
  *to = value;
}
__global__ void write_late_plainly(int64_t* to, int64_t value) {
  const long long until = clock64() + kSlowCycles;
  while (clock64() < until) {
  }
  *to = value;
}
__global__ void double_it(int64_t* to, const int64_t* from) {
  await_inputs();
  *to = 2 * *from;
}

void require(cudaError_t error) { REQUIRE_MESSAGE(error == cudaSuccess, cudaGetErrorString(error)); }

// A capture on a stream of its own, and numbers that its kernels work on.
struct Capture {
  cudaStream_t stream = nullptr, side = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  int64_t* numbers = nullptr;

  Capture() {
    for (cudaStream_t* one : {&stream, &side}) require(cudaStreamCreateWithFlags(one, cudaStreamNonBlocking));
    require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    require(cudaMalloc(&numbers, 8 * sizeof(int64_t)));
    require(cudaMemset(numbers, 0, 8 * sizeof(int64_t)));
    require(cudaDeviceSynchronize());
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (graph) cudaGraphDestroy(graph);
    cudaFree(numbers);
    cudaEventDestroy(event);
    cudaStreamDestroy(side);
    cudaStreamDestroy(stream);
  }
  void write(int64_t* to, int64_t value) { require(launch({1, 1, 0, stream}, write_late, to, value)); }
  void twice(int64_t* to, const int64_t* from) { require(launch({1, 1, 0, stream}, double_it, to, from)); }
  void join(cudaStream_t after, cudaStream_t before) {
    require(cudaEventRecord(event, before));
    require(cudaStreamWaitEvent(after, event));
  }
  // How many edges of the graph let a kernel come up early, and how many do not.
  struct Edges {
    size_t early = 0, plain = 0;
  };
  Edges end() {
    require(cudaStreamEndCapture(stream, &graph));
    size_t count = 0;
    require(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
    std::vector<cudaGraphNode_t> from(count), to(count);
    std::vector<cudaGraphEdgeData> data(count);
    require(cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &count));
    Edges edges;
    for (const cudaGraphEdgeData& edge : data)
      ++(edge.type == cudaGraphDependencyTypeProgrammatic ? edges.early : edges.plain);
    return edges;
  }
  // The numbers after so many launches, which do not wait for each other on the host.
  std::vector<int64_t> run(int times = 1) {
    cudaGraphExec_t exec = nullptr;
    require(cudaGraphInstantiate(&exec, graph, 0));
    for (int n = 0; n < times; ++n) require(cudaGraphLaunch(exec, stream));
    std::vector<int64_t> seen(8);
    require(cudaMemcpyAsync(seen.data(), numbers, 8 * sizeof(int64_t), cudaMemcpyDeviceToHost, stream));
    require(cudaStreamSynchronize(stream));
    require(cudaGraphExecDestroy(exec));
    return seen;
  }
};

bool comes_up_early() {
  int major = 0;
  require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  return major >= 9;
}

TEST_CASE("4.5: in a chain of kernels each may come up while the one before ends, and reads what that wrote") {
  Capture capture;
  capture.write(&capture.numbers[0], 21);
  for (int n = 0; n < 3; ++n) capture.twice(&capture.numbers[n + 1], &capture.numbers[n]);
  const Capture::Edges edges = capture.end();
  CHECK(edges.early == (comes_up_early() ? 3 : 0));
  CHECK(edges.early + edges.plain == 3);
  const std::vector<int64_t> seen = capture.run(3);
  for (int n = 0; n < 4; ++n) CHECK(seen[static_cast<size_t>(n)] == int64_t{21} << n);
}

TEST_CASE("4.5: a kernel that follows one which knows nothing of it reads what was written, too") {
  Capture capture;
  write_late_plainly<<<1, 1, 0, capture.stream>>>(&capture.numbers[0], 4);
  require(cudaGetLastError());
  capture.twice(&capture.numbers[1], &capture.numbers[0]);
  double_it<<<1, 1, 0, capture.stream>>>(&capture.numbers[2],
                                         &capture.numbers[1]); // launched plainly: it waits as ever
  require(cudaGetLastError());
  capture.twice(&capture.numbers[3], &capture.numbers[2]);
  capture.end();
  const std::vector<int64_t> seen = capture.run(3);
  CHECK(seen[3] == 32);
}

TEST_CASE("4.5: after several branches, a fill or a copy a kernel comes up when they are over") {
  Capture capture;
  capture.write(&capture.numbers[0], 3);
  capture.join(capture.side, capture.stream);
  capture.twice(&capture.numbers[1], &capture.numbers[0]); // early: after one kernel
  require(launch({1, 1, 0, capture.side}, write_late, &capture.numbers[2], int64_t{5}));
  capture.join(capture.stream, capture.side);
  capture.twice(&capture.numbers[3], &capture.numbers[2]); // after two
  require(cudaMemsetAsync(&capture.numbers[4], 0, sizeof(int64_t), capture.stream));
  capture.twice(&capture.numbers[5], &capture.numbers[3]); // after a fill
  const Capture::Edges edges = capture.end();
  CHECK(edges.early == (comes_up_early() ? 2 : 0));
  const std::vector<int64_t> seen = capture.run(2);
  CHECK(seen[1] == 6);
  CHECK(seen[5] == 20);
}

} // namespace
} // namespace millrace::test
