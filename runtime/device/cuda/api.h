// Every call into CUDA goes through here: named, counted, and where a test asks for it made to fail.
//
// A call that fails is classed (semantics.md 4.9): out of memory is told to whoever asked; anything else ends the
// device, because from then on nothing of its context can be trusted.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace millrace::device::cuda {

// The functions of CUDA's runtime that the module calls, without their prefix.
#define MILLRACE_CUDA_CALLS(X) \
  X(GetDeviceCount)            \
  X(SetDevice)                 \
  X(DeviceGetAttribute)        \
  X(DeviceGetPCIBusId)         \
  X(DeviceCanAccessPeer)       \
  X(DeviceEnablePeerAccess)    \
  X(MemGetInfo)                \
  X(MemPoolCreate)             \
  X(MemPoolDestroy)            \
  X(MemPoolSetAttribute)       \
  X(MemPoolSetAccess)          \
  X(Malloc)                    \
  X(Free)                      \
  X(MallocFromPoolAsync)       \
  X(FreeAsync)                 \
  X(HostAlloc)                 \
  X(FreeHost)                  \
  X(HostRegister)              \
  X(HostUnregister)            \
  X(StreamCreateWithPriority)  \
  X(StreamDestroy)             \
  X(StreamSynchronize)         \
  X(StreamWaitEvent)           \
  X(StreamBeginCapture)        \
  X(StreamEndCapture)          \
  X(EventCreateWithFlags)      \
  X(EventDestroy)              \
  X(EventRecord)               \
  X(EventQuery)                \
  X(EventSynchronize)          \
  X(EventElapsedTime)          \
  X(MemcpyAsync)               \
  X(GraphInstantiate)          \
  X(GraphGetRootNodes)         \
  X(GraphUpload)               \
  X(GraphDestroy)              \
  X(GraphExecDestroy)

enum class Call : uint8_t {
#define MILLRACE_NAME(name) name,
  MILLRACE_CUDA_CALLS(MILLRACE_NAME)
#undef MILLRACE_NAME
      StreamWriteValue, // of the driver, from here on
  StreamWaitValue,
  GraphKernelNodeGetParams,
  GraphExecKernelNodeSetParams,
  GraphLaunch,
  LaunchKernel, // of the module's own
  count
};
inline constexpr size_t kCalls = static_cast<size_t>(Call::count);
const char* name_of(Call call);

// What a test makes fail: the n-th call (from 1) of one function answers with this error and is not made; 0: none.
// A hang is a fence that never comes: completion words are no longer written.
struct Fault {
  Call call = Call::count;
  uint64_t nth = 0;
  cudaError_t error = cudaSuccess;
};

template <Call>
struct FunctionOf;
#define MILLRACE_FUNCTION(name)                \
  template <>                                  \
  struct FunctionOf<Call::name> {              \
    static constexpr auto value = &cuda##name; \
  };
MILLRACE_CUDA_CALLS(MILLRACE_FUNCTION)
#undef MILLRACE_FUNCTION

// Any thread.
class Api {
 public:
  // Faults from text, "GraphLaunch:100:700,StreamWriteValue:5:719": function, which of its calls, the error's number.
  // What cannot be read is told in `wrong`.
  Api(const std::string& faults, std::string& wrong);

  template <Call id, class... Arguments>
  cudaError_t call(Arguments... arguments) {
    const cudaError_t fault = count(id);
    return fault != cudaSuccess ? fault : FunctionOf<id>::value(arguments...);
  }
  // Before what is not a function of the runtime: what it must answer with, or cudaSuccess.
  cudaError_t count(Call call) {
    const uint64_t nth = counts_[static_cast<size_t>(call)].fetch_add(1, std::memory_order_relaxed) + 1;
    return fault_count_ == 0 ? cudaSuccess : injected(call, nth);
  }

  // Calls of the driver that the runtime does not have. Null where it is too old.
  cudaError_t write_value(cudaStream_t stream, void* word, uint64_t value);
  cudaError_t wait_value(cudaStream_t stream, void* word, uint64_t least);
  bool is_complete() const {
    return write_value_ && wait_value_ && kernel_of_node_ && set_parameters_ && launch_graph_;
  }
  // On each tick, where CUDA's runtime would ask the driver for the current context and the kernel's function as well.
  cudaError_t kernel_of_node(cudaGraphNode_t node, CUDA_KERNEL_NODE_PARAMS& parameters);
  cudaError_t set_parameters(cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_KERNEL_NODE_PARAMS& parameters);
  cudaError_t launch_graph(cudaGraphExec_t exec, cudaStream_t stream);

  std::map<std::string, uint64_t> counts() const; // those that were called

 private:
  cudaError_t injected(Call call, uint64_t nth) const;

  std::array<std::atomic<uint64_t>, kCalls> counts_{};
  std::array<Fault, 4> faults_{};
  size_t fault_count_ = 0;
  CUresult (*write_value_)(CUstream, CUdeviceptr, cuuint64_t, unsigned) = nullptr;
  CUresult (*wait_value_)(CUstream, CUdeviceptr, cuuint64_t, unsigned) = nullptr;
  CUresult (*kernel_of_node_)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*) = nullptr;
  CUresult (*set_parameters_)(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*) = nullptr;
  CUresult (*launch_graph_)(CUgraphExec, CUstream) = nullptr;
};

// "cudaGraphLaunch: an illegal memory access was encountered (700)".
std::string sentence_of(Call call, cudaError_t error);

} // namespace millrace::device::cuda
