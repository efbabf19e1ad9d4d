// repeat() of <millrace/launch.cuh>: loops inside a tick that a kernel ends (rule 4.13), and what handlers are told of
// their device (rule 4.14).
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <millrace/launch.cuh>

#include <cstdlib>
#include <vector>

#include "alike.h"
#include "embed/compose.h"
#include "exec/run.h"
#include "rig.h"

namespace millrace::test {
namespace {

void require(cudaError_t error) { REQUIRE_MESSAGE(error == cudaSuccess, cudaGetErrorString(error)); }

// Two kernels a round: the loop ends by the first, and the second still runs in that round.
__global__ void count_round(LoopWord* loop, int64_t* counted, int64_t last) {
  await_inputs();
  if (is_over(loop)) return;
  if (++counted[0] == last) end_loop(loop);
}
__global__ void count_after(const LoopWord* loop, int64_t* counted) {
  await_inputs();
  if (is_over(loop)) return;
  ++counted[1];
}
__global__ void note_rounds(const LoopWord* loop, int64_t* counted) {
  await_inputs();
  counted[2] = loop->rounds;
}
__global__ void clear(int64_t* counted) {
  await_inputs();
  counted[0] = counted[1] = counted[2] = 0;
}

struct Loops {
  cudaStream_t stream = nullptr;
  LoopWord* words = nullptr;
  int64_t* counted = nullptr; // three of each of two loops
  Loop first, second;

  Loops() {
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    require(cudaMalloc(&words, 2 * sizeof(LoopWord)));
    require(cudaMalloc(&counted, 6 * sizeof(int64_t)));
    require(cudaMemset(words, 0xff, 2 * sizeof(LoopWord)));
    require(cudaMemset(counted, 0xff, 6 * sizeof(int64_t)));
    require(cudaDeviceSynchronize());
  }
  ~Loops() {
    cudaFree(counted);
    cudaFree(words);
    cudaStreamDestroy(stream);
  }
  void loop(int which, uint32_t at_most, int64_t last) {
    LoopWord* const word = words + which;
    int64_t* const counts = counted + 3 * which;
    require(launch({1, 1, 0, stream}, clear, counts));
    require(repeat(stream, which == 0 ? first : second, word, at_most, [&](cudaStream_t round) {
      const cudaError_t error = launch({1, 1, 0, round}, count_round, word, counts, last);
      return error != cudaSuccess ? error : launch({1, 1, 0, round}, count_after, word, counts);
    }));
    require(launch({1, 1, 0, stream}, note_rounds, word, counts));
  }
  std::vector<int64_t> seen() {
    std::vector<int64_t> numbers(6);
    require(cudaMemcpyAsync(numbers.data(), counted, 6 * sizeof(int64_t), cudaMemcpyDeviceToHost, stream));
    require(cudaStreamSynchronize(stream));
    return numbers;
  }
};

// At once, in the middle, at the limit, and no round at all.
struct Bounds {
  uint32_t at_most;
  int64_t last, rounds;
};
constexpr Bounds kBounds[] = {{20, 1, 1}, {20, 7, 7}, {20, 20, 20}, {20, 99, 20}, {1, 99, 1}, {0, 1, 0}};

// Loops become nodes, or their rounds are enqueued one after the other.
struct Ways {
  bool unrolled;
  explicit Ways(bool unrolls) : unrolled(unrolls) {
    unrolls ? ::setenv("MILLRACE_CUDA_UNROLL", "1", 1) : ::unsetenv("MILLRACE_CUDA_UNROLL");
  }
  ~Ways() { ::unsetenv("MILLRACE_CUDA_UNROLL"); }
};

TEST_CASE("4.13: in a capture a loop ends at once, in the middle or at its limit, and again in each launch") {
  for (const bool unrolled : {false, true}) {
    const Ways ways(unrolled);
    for (const Bounds& one : kBounds)
      for (const Bounds& other : kBounds) {
        CAPTURE(unrolled);
        CAPTURE(one.rounds);
        CAPTURE(other.rounds);
        Loops loops;
        require(cudaStreamBeginCapture(loops.stream, cudaStreamCaptureModeThreadLocal));
        loops.loop(0, one.at_most, one.last);
        loops.loop(1, other.at_most, other.last);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        require(cudaStreamEndCapture(loops.stream, &graph));
        require(cudaGraphInstantiate(&exec, graph, 0));
        for (int launched = 0; launched < 3; ++launched) require(cudaGraphLaunch(exec, loops.stream));
        CHECK(loops.seen() ==
              std::vector{one.rounds, one.rounds, one.rounds, other.rounds, other.rounds, other.rounds});
        require(cudaGraphExecDestroy(exec));
        require(cudaGraphDestroy(graph));
      }
  }
}

TEST_CASE("4.13: on a stream without a capture the loop is a graph of its own, which takes new arguments") {
  for (const bool unrolled : {false, true}) {
    const Ways ways(unrolled);
    CAPTURE(unrolled);
    Loops loops;
    for (const Bounds& one : kBounds) { // each is enqueued while the one before may still run
      loops.loop(0, one.at_most, one.last);
      loops.loop(1, 30, one.last);
    }
    for (const Bounds& one : kBounds) {
      loops.loop(0, one.at_most, one.last);
      CHECK(loops.seen()[0] == one.rounds);
      CHECK(loops.seen()[2] == one.rounds);
    }
  }
}

TEST_CASE("4.13: loops may be nested") {
  for (const bool unrolled : {false, true}) {
    const Ways ways(unrolled);
    for (const bool captured : {false, true}) {
      CAPTURE(unrolled);
      CAPTURE(captured);
      Loops loops;
      require(launch({1, 1, 0, loops.stream}, clear, loops.counted));
      require(cudaStreamSynchronize(loops.stream));
      if (captured) require(cudaStreamBeginCapture(loops.stream, cudaStreamCaptureModeThreadLocal));
      require(repeat(loops.stream, loops.first, loops.words, 4, [&](cudaStream_t outer) {
        return repeat(outer, loops.second, loops.words + 1, 3, [&](cudaStream_t inner) {
          return launch({1, 1, 0, inner}, count_round, loops.words + 1, loops.counted, int64_t{1000});
        });
      }));
      if (captured) {
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        require(cudaStreamEndCapture(loops.stream, &graph));
        require(cudaGraphInstantiate(&exec, graph, 0));
        require(cudaGraphLaunch(exec, loops.stream));
        require(cudaStreamSynchronize(loops.stream));
        require(cudaGraphExecDestroy(exec));
        require(cudaGraphDestroy(graph));
      }
      CHECK(loops.seen()[0] == 12);
    }
  }
}

std::vector<Seen> on_host(const std::vector<std::string>& middle, int64_t count) {
  Setup setup;
  setup.more = &cuda_plugin();
  return seen_by(chain("c", middle, count), setup, "c");
}

TEST_CASE("4.13: two loops in a region are one launch a tick, over 10,000 ticks") {
  constexpr int64_t kTicks = 10'000;
  const std::vector<std::string> middle = {"add", "climb", "add"};
  for (const bool unrolled : {false, true}) {
    const Ways ways(unrolled);
    CAPTURE(unrolled);
    Compiled compiled(chain("c", middle, kTicks), on_gpu());
    REQUIRE(compiled.regions().size() == 1);
    const Ran ran = compiled.run();
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(ran.seen("c") == on_host(middle, kTicks));
    CHECK(ran.report.regions.at(0).launches == kTicks);
    CHECK(ran.report.regions.at(0).one_by_one == 0);
  }
}

TEST_CASE("4.13: a loop takes a live parameter that has changed") {
  Setup gpu = on_gpu(), host;
  host.more = &cuda_plugin();
  gpu.options.script = host.options.script = {{57, {"h1", "of", "3"}}, {200, {"h1", "of", "11"}}};
  const std::vector<std::string> middle = {"add", "climb"};
  CHECK(seen_by(chain("c", middle, 300), gpu, "c") == seen_by(chain("c", middle, 300), host, "c"));
}

TEST_CASE("4.13: a loop on streams gives what it gives in a region") {
  const std::vector<std::string> middle = {"add", "climb", "waits", "climb"};
  CHECK(seen_by(chain("c", middle, 200), on_gpu(), "c") == on_host({"add", "climb", "add", "climb"}, 200));
}

TEST_CASE("4.14: a handler starts on the GPU that its body runs on, which is current then and when it stops") {
  for (const char* const domain : {"cuda:0", "cuda:1"}) {
    if (domain == std::string("cuda:1") && !std::getenv("MILLRACE_TWO_GPUS")) {
      MESSAGE("left out: there is no second GPU");
      continue;
    }
    CAPTURE(domain);
    Pipeline pipeline = chain("c", {"where", "where"}, 50);
    pipeline.graph.handlers[1].device = "cuda:0"; // the first of both handlers is on the first GPU in any case
    pipeline.graph.handlers[2].device = domain;
    std::vector<std::string> domains = {"cpu", "cuda:0"};
    if (domain != domains[1]) domains.emplace_back(domain);
    CHECK(seen_by(std::move(pipeline), on_gpu(domains), "c") == on_host({"where", "where"}, 50));
  }
}

} // namespace
} // namespace millrace::test
