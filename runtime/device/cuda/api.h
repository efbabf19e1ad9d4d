// Calls into CUDA: each is named and counted, and fails if a test asks for that.
//
// Errors are classed (semantics.md 4.9). Out of memory in allocate() is reported to its caller, and so are pages that
// cannot be locked, errors that a body left, and failed captures. Any other error ends the device, because nothing of
// its context can be trusted from then on.
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

// The functions of CUDA's runtime that Api::call() calls, without their prefix.
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
  X(MemsetAsync)               \
  X(GraphInstantiate)          \
  X(GraphGetRootNodes)         \
  X(GraphUpload)               \
  X(GraphDestroy)              \
  X(GraphExecDestroy)

enum class Call : uint8_t {
#define MILLRACE_NAME(name) name,
  MILLRACE_CUDA_CALLS(MILLRACE_NAME)
#undef MILLRACE_NAME
      StreamWriteValue, // the driver's functions, from here on
  StreamWaitValue,
  GraphKernelNodeGetParams,
  GraphExecKernelNodeSetParams,
  GraphLaunch,
  LaunchKernel, // the module's own kernels
  count
};
inline constexpr size_t kCalls = static_cast<size_t>(Call::count);
const char* name_of(Call call);

// A failure that a test asks for: the n-th call (from 1) of one function answers with this error and is not made; 0:
// none.
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
  // Reads faults from text, "GraphLaunch:100:700,StreamWriteValue:5:719": function, number of the call, number of the
  // error. `wrong` tells which part cannot be read.
  Api(const std::string& faults, std::string& wrong);

  template <Call id, class... Arguments>
  cudaError_t call(Arguments... arguments) {
    const cudaError_t fault = count(id);
    return fault != cudaSuccess ? fault : FunctionOf<id>::value(arguments...);
  }
  // Counts a call before it is made. Returns the error that a test wants instead of the call, or cudaSuccess. Callers
  // need it only for calls that are not functions of CUDA's runtime.
  cudaError_t count(Call call) {
    const uint64_t nth = counts_[static_cast<size_t>(call)].fetch_add(1, std::memory_order_relaxed) + 1;
    return fault_count_ == 0 ? cudaSuccess : injected(call, nth);
  }

  // Calls of the driver that the runtime does not have. is_complete() is false if the driver is too old for one of
  // these or of those below.
  cudaError_t write_value(cudaStream_t stream, void* word, uint64_t value);
  cudaError_t wait_value(cudaStream_t stream, void* word, uint64_t least);
  bool is_complete() const {
    return write_value_ && wait_value_ && kernel_of_node_ && set_parameters_ && launch_graph_;
  }
  // set_parameters() and launch_graph() are called on each tick. The same calls of CUDA's runtime would also ask the
  // driver for the current context and the kernel's function.
  cudaError_t kernel_of_node(cudaGraphNode_t node, CUDA_KERNEL_NODE_PARAMS& parameters);
  cudaError_t set_parameters(cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_KERNEL_NODE_PARAMS& parameters);
  cudaError_t launch_graph(cudaGraphExec_t exec, cudaStream_t stream);

  std::map<std::string, uint64_t> counts() const; // only functions that were called

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
