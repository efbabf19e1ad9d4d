// Rivals of the benchmark: the same work by hand, with the CUDA runtime alone.
#include "rivals.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <string>

#include "torch_module.h"

namespace millrace::test {
namespace {

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "rival: %s\n", cudaGetErrorString(error));
  std::abort();
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

__global__ void add_one(int64_t* to, const int64_t* from) { *to = *from + 1; }
// In cycles of a clock that most of these devices reach; where it is slower, all that spin take longer.
__global__ void spin_and_add(int64_t* to, const int64_t* from, uint64_t ns) {
  const long long until = clock64() + static_cast<long long>(ns * 1.98);
  while (clock64() < until) {
  }
  *to = *from + 1;
}
struct Numbers {
  uint64_t index, media_time, sequence;
};
__global__ void set_numbers(Numbers* to, Numbers numbers) { *to = numbers; }
__global__ void fetch_numbers(Numbers* to, const volatile Numbers* from) {
  to->index = from->index;
  to->media_time = from->media_time;
  to->sequence = from->sequence;
}
__global__ void tell(uint64_t* word, uint64_t* count) {
  ::cuda::atomic_ref<uint64_t, ::cuda::thread_scope_system>(*word).store(++*count, ::cuda::memory_order_release);
}
__global__ void copy_wide(uint4* to, const uint4* from, uint64_t count) {
  const uint64_t at = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x;
  if (at < count) to[at] = from[at];
}

void copy_on(cudaStream_t stream, void* to, const void* from, uint64_t bytes) {
  const uint64_t count = bytes / 16;
  copy_wide<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(static_cast<uint4*>(to),
                                                                            static_cast<const uint4*>(from), count);
}

} // namespace

struct GraphLoop::State {
  int device = 0;
  LaunchedBy launcher = LaunchedBy::cuda;
  cudaStream_t stream = nullptr;
  cudaGraphExec_t exec[3] = {};
  void* of_torch[3] = {};
  int64_t* numbers = nullptr;
  uint64_t* count = nullptr;
  uint64_t* word = nullptr;
  uint64_t launched = 0;
  NumbersBy by = NumbersBy::nobody;
  cudaGraph_t graph[3] = {};
  cudaGraphNode_t first[3] = {};
  Numbers* on_device[3] = {};
  Numbers* on_host[3] = {};

  void record(int slot, uint32_t nodes, uint64_t spin_ns) const {
    if (by == NumbersBy::argument) set_numbers<<<1, 1, 0, stream>>>(on_device[slot], {});
    if (by == NumbersBy::mapped) fetch_numbers<<<1, 1, 0, stream>>>(on_device[slot], on_host[slot]);
    if (by == NumbersBy::copy)
      check(cudaMemcpyAsync(on_device[slot], on_host[slot], sizeof(Numbers), cudaMemcpyHostToDevice, stream));
    for (uint32_t n = 0; n < nodes; ++n) {
      if (spin_ns > 0)
        spin_and_add<<<1, 1, 0, stream>>>(numbers + n + 1, numbers + n, spin_ns);
      else
        add_one<<<1, 1, 0, stream>>>(numbers + n + 1, numbers + n);
    }
    tell<<<1, 1, 0, stream>>>(word, count);
  }
};

GraphLoop::GraphLoop(int device, uint32_t nodes, uint64_t spin_ns, NumbersBy by, LaunchedBy launcher)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.by = by;
  s.launcher = launcher;
  s.device = device;
  check(cudaSetDevice(device));
  if (launcher == LaunchedBy::torch)
    s.stream = static_cast<cudaStream_t>(torch().stream(device));
  else
    check(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
  check(cudaMalloc(&s.numbers, (nodes + 1) * sizeof(int64_t)));
  check(cudaMalloc(&s.count, sizeof(uint64_t)));
  check(cudaHostAlloc(&s.word, 128, cudaHostAllocMapped));
  for (int slot = 0; slot < 3; ++slot) { // a ring: an instance cannot run beside itself
    check(cudaMalloc(&s.on_device[slot], sizeof(Numbers)));
    check(cudaHostAlloc(&s.on_host[slot], sizeof(Numbers), cudaHostAllocMapped));
    auto record = [&] { s.record(slot, nodes, spin_ns); };
    if (launcher == LaunchedBy::torch) {
      record(); // once before: what loads a kernel's code is not for a capture
      s.of_torch[slot] = torch().capture([](void* with) { (*static_cast<decltype(record)*>(with))(); }, &record);
      continue;
    }
    check(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    record();
    check(cudaStreamEndCapture(s.stream, &s.graph[slot]));
    check(cudaGraphInstantiate(&s.exec[slot], s.graph[slot], 0));
    check(cudaGraphUpload(s.exec[slot], s.stream));
    size_t roots = 1;
    check(cudaGraphGetRootNodes(s.graph[slot], &s.first[slot], &roots));
  }
  check(cudaMemsetAsync(s.count, 0, sizeof(uint64_t), s.stream));
  check(cudaStreamSynchronize(s.stream));
  *s.word = 0;
}

GraphLoop::~GraphLoop() {
  cudaStreamSynchronize(state_->stream);
  for (cudaGraphExec_t exec : state_->exec)
    if (exec) cudaGraphExecDestroy(exec);
  cudaFree(state_->numbers);
  cudaFree(state_->count);
  cudaFreeHost(state_->word);
  if (state_->launcher == LaunchedBy::cuda) cudaStreamDestroy(state_->stream);
}

int64_t GraphLoop::launch() {
  State& s = *state_;
  const int64_t begin = now_ns();
  const uint64_t slot = s.launched++ % 3;
  if (s.launcher == LaunchedBy::torch) {
    torch().launch(s.of_torch[slot]);
    return now_ns() - begin;
  }
  Numbers numbers{s.launched, s.launched, s.launched};
  if (s.by == NumbersBy::argument) {
    void* arguments[] = {&s.on_device[slot], &numbers};
    cudaKernelNodeParams node{};
    node.func = reinterpret_cast<void*>(&set_numbers);
    node.gridDim = node.blockDim = {1, 1, 1};
    node.kernelParams = arguments;
    check(cudaGraphExecKernelNodeSetParams(s.exec[slot], s.first[slot], &node));
  } else if (s.by != NumbersBy::nobody) {
    *s.on_host[slot] = numbers;
  }
  check(cudaGraphLaunch(s.exec[slot], s.stream));
  return now_ns() - begin;
}

bool GraphLoop::done() const {
  return std::atomic_ref<uint64_t>(*state_->word).load(std::memory_order_acquire) >= state_->launched;
}
void GraphLoop::await() const {
  while (!done()) __builtin_ia32_pause();
}

double frames_by_hand(uint64_t bytes, uint32_t depth, uint32_t count) {
  cudaStream_t up, compute, down;
  for (cudaStream_t* stream : {&up, &compute, &down}) check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  struct Slot {
    void *host_in, *host_out, *in, *out;
    cudaEvent_t copied, computed, done;
  };
  std::vector<Slot> slots(depth);
  for (Slot& slot : slots) {
    check(cudaMallocHost(&slot.host_in, bytes));
    check(cudaMallocHost(&slot.host_out, bytes));
    std::memset(slot.host_in, 1, bytes);
    check(cudaMalloc(&slot.in, bytes));
    check(cudaMalloc(&slot.out, bytes));
    for (cudaEvent_t* event : {&slot.copied, &slot.computed, &slot.done})
      check(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  }
  const auto round = [&](uint32_t n) {
    for (uint32_t f = 0; f < n; ++f) {
      Slot& slot = slots[f % depth];
      if (f >= depth) check(cudaEventSynchronize(slot.done));
      check(cudaMemcpyAsync(slot.in, slot.host_in, bytes, cudaMemcpyHostToDevice, up));
      check(cudaEventRecord(slot.copied, up));
      check(cudaStreamWaitEvent(compute, slot.copied));
      copy_on(compute, slot.out, slot.in, bytes);
      check(cudaEventRecord(slot.computed, compute));
      check(cudaStreamWaitEvent(down, slot.computed));
      check(cudaMemcpyAsync(slot.host_out, slot.out, bytes, cudaMemcpyDeviceToHost, down));
      check(cudaEventRecord(slot.done, down));
    }
    check(cudaStreamSynchronize(down));
  };
  round(2 * depth);
  const int64_t begin = now_ns();
  round(count);
  const double seconds = static_cast<double>(now_ns() - begin) / 1e9;
  for (Slot& slot : slots) {
    cudaFreeHost(slot.host_in), cudaFreeHost(slot.host_out), cudaFree(slot.in), cudaFree(slot.out);
    cudaEventDestroy(slot.copied), cudaEventDestroy(slot.computed), cudaEventDestroy(slot.done);
  }
  for (cudaStream_t stream : {up, compute, down}) cudaStreamDestroy(stream);
  return seconds;
}

double frames_naively(uint64_t bytes, uint32_t count) {
  std::vector<uint8_t> in(bytes, 1), out(bytes);
  const auto round = [&](uint32_t n) {
    for (uint32_t f = 0; f < n; ++f) {
      void *a, *b;
      check(cudaMalloc(&a, bytes));
      check(cudaMalloc(&b, bytes));
      check(cudaMemcpy(a, in.data(), bytes, cudaMemcpyHostToDevice));
      copy_on(nullptr, b, a, bytes);
      check(cudaDeviceSynchronize());
      check(cudaMemcpy(out.data(), b, bytes, cudaMemcpyDeviceToHost));
      check(cudaFree(a));
      check(cudaFree(b));
    }
  };
  round(3);
  const int64_t begin = now_ns();
  round(count);
  return static_cast<double>(now_ns() - begin) / 1e9;
}

PeerCopies peer_copies(uint64_t bytes, uint32_t count, int on) {
  void *from, *to;
  cudaStream_t stream;
  check(cudaSetDevice(0));
  check(cudaMalloc(&from, bytes));
  check(cudaSetDevice(1));
  check(cudaMalloc(&to, bytes));
  check(cudaSetDevice(on));
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const cudaError_t peer = cudaDeviceEnablePeerAccess(1 - on, 0);
  if (peer != cudaSuccess && peer != cudaErrorPeerAccessAlreadyEnabled) check(peer);
  (void)cudaGetLastError();
  const auto round = [&](uint32_t n) {
    for (uint32_t c = 0; c < n; ++c) check(cudaMemcpyPeerAsync(to, 1, from, 0, bytes, stream));
    check(cudaStreamSynchronize(stream));
  };
  round(5);
  const int64_t begin = now_ns();
  round(count);
  const double seconds = static_cast<double>(now_ns() - begin) / 1e9;
  // An event between any two of them, as many copies in a row as there are events.
  std::array<cudaEvent_t, 65> events;
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event));
  std::vector<float> each_ms;
  while (each_ms.size() < count) {
    check(cudaEventRecord(events[0], stream));
    for (size_t e = 1; e < events.size(); ++e) {
      check(cudaMemcpyPeerAsync(to, 1, from, 0, bytes, stream));
      check(cudaEventRecord(events[e], stream));
    }
    check(cudaStreamSynchronize(stream));
    for (size_t e = 1; e < events.size(); ++e)
      check(cudaEventElapsedTime(&each_ms.emplace_back(), events[e - 1], events[e]));
  }
  const auto middle = each_ms.begin() + static_cast<std::ptrdiff_t>(each_ms.size() / 2);
  std::nth_element(each_ms.begin(), middle, each_ms.end());
  for (cudaEvent_t event : events) cudaEventDestroy(event);
  cudaStreamDestroy(stream);
  cudaFree(to);
  check(cudaSetDevice(0));
  cudaFree(from);
  return {seconds, static_cast<double>(*middle) * 1000};
}

} // namespace millrace::test
