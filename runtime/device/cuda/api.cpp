// Counts calls into CUDA, and makes those fail that a test chose; see api.h.
#include "device/cuda/api.h"

#include <cstdlib>
#include <sstream>

namespace millrace::device::cuda {
namespace {

constexpr std::array<const char*, kCalls> kNames = {
#define MILLRACE_NAME(name) #name,
    MILLRACE_CUDA_CALLS(MILLRACE_NAME)
#undef MILLRACE_NAME
        "StreamWriteValue",
    "StreamWaitValue",
    "GraphKernelNodeGetParams",
    "GraphExecKernelNodeSetParams",
    "GraphLaunch",
    "LaunchKernel"};

void* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : nullptr;
}

// Reads a fault such as "GraphLaunch:100:700". False if the text is no fault.
bool read_fault(const std::string& text, Fault& fault) {
  std::istringstream parts(text);
  std::string name, nth, error;
  if (!std::getline(parts, name, ':') || !std::getline(parts, nth, ':') || !std::getline(parts, error)) return false;
  for (size_t c = 0; c < kCalls; ++c)
    if (name == kNames[c]) fault.call = static_cast<Call>(c);
  fault.nth = std::strtoull(nth.c_str(), nullptr, 10);
  fault.error = static_cast<cudaError_t>(std::atoi(error.c_str()));
  return fault.call != Call::count && fault.nth > 0 && fault.error != cudaSuccess;
}

} // namespace

const char* name_of(Call call) { return kNames[static_cast<size_t>(call)]; }

std::string sentence_of(Call call, cudaError_t error) {
  const bool of_driver = call >= Call::StreamWriteValue && call < Call::LaunchKernel;
  return std::string(of_driver ? "cu" : "cuda") + name_of(call) + ": " + cudaGetErrorString(error) + " (" +
         std::to_string(static_cast<int>(error)) + ")";
}

Api::Api(const std::string& faults, std::string& wrong) {
  std::istringstream text(faults);
  for (std::string one; std::getline(text, one, ',');) {
    if (fault_count_ == faults_.size() || !read_fault(one, faults_[fault_count_])) {
      wrong = "\"" + one + "\" is no fault: FUNCTION:NTH:ERROR, as GraphLaunch:100:700";
      return;
    }
    ++fault_count_;
  }
  write_value_ = reinterpret_cast<decltype(write_value_)>(driver_function("cuStreamWriteValue64"));
  wait_value_ = reinterpret_cast<decltype(wait_value_)>(driver_function("cuStreamWaitValue64"));
  kernel_of_node_ = reinterpret_cast<decltype(kernel_of_node_)>(driver_function("cuGraphKernelNodeGetParams"));
  set_parameters_ = reinterpret_cast<decltype(set_parameters_)>(driver_function("cuGraphExecKernelNodeSetParams"));
  launch_graph_ = reinterpret_cast<decltype(launch_graph_)>(driver_function("cuGraphLaunch"));
}

cudaError_t Api::injected(Call call, uint64_t nth) const {
  for (size_t f = 0; f < fault_count_; ++f)
    if (faults_[f].call == call && faults_[f].nth == nth) return faults_[f].error;
  return cudaSuccess;
}

// CUresult and cudaError_t have the same numbers.
cudaError_t Api::write_value(cudaStream_t stream, void* word, uint64_t value) {
  const cudaError_t injected = count(Call::StreamWriteValue);
  if (injected != cudaSuccess) return injected;
  return static_cast<cudaError_t>(write_value_(stream, reinterpret_cast<CUdeviceptr>(word), value, 0));
}

cudaError_t Api::wait_value(cudaStream_t stream, void* word, uint64_t least) {
  const cudaError_t injected = count(Call::StreamWaitValue);
  if (injected != cudaSuccess) return injected;
  constexpr unsigned kAtLeast = CU_STREAM_WAIT_VALUE_GEQ;
  return static_cast<cudaError_t>(wait_value_(stream, reinterpret_cast<CUdeviceptr>(word), least, kAtLeast));
}

cudaError_t Api::kernel_of_node(cudaGraphNode_t node, CUDA_KERNEL_NODE_PARAMS& parameters) {
  const cudaError_t injected = count(Call::GraphKernelNodeGetParams);
  return injected != cudaSuccess ? injected : static_cast<cudaError_t>(kernel_of_node_(node, &parameters));
}

cudaError_t Api::set_parameters(cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_KERNEL_NODE_PARAMS& parameters) {
  const cudaError_t injected = count(Call::GraphExecKernelNodeSetParams);
  return injected != cudaSuccess ? injected : static_cast<cudaError_t>(set_parameters_(exec, node, &parameters));
}

cudaError_t Api::launch_graph(cudaGraphExec_t exec, cudaStream_t stream) {
  const cudaError_t injected = count(Call::GraphLaunch);
  return injected != cudaSuccess ? injected : static_cast<cudaError_t>(launch_graph_(exec, stream));
}

std::map<std::string, uint64_t> Api::counts() const {
  std::map<std::string, uint64_t> counts;
  for (size_t c = 0; c < kCalls; ++c)
    if (const uint64_t count = counts_[c].load(std::memory_order_relaxed)) counts[kNames[c]] = count;
  return counts;
}

} // namespace millrace::device::cuda
