// A fit on a GPU with all its memory, for tests and benchmarks: asked as often as one likes, in each way in which a
// graph of handlers runs it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "plugins/codebook/gpu/fit_on_gpu.h"
#include "resident_rig.h"
#include "tests/gpu/on_gpu.h"

namespace millrace::codebook {

using handlers::checked;
using handlers::GpuBytes;
using handlers::GpuStream;

template <class Element>
inline constexpr gpu::ElementType kType = gpu::ElementType::f32;
template <>
inline constexpr gpu::ElementType kType<Float16> = gpu::ElementType::f16;
template <>
inline constexpr gpu::ElementType kType<BFloat16> = gpu::ElementType::bf16;

enum class Way { on_a_stream, captured, unrolled };

// One question on the device, which can be asked again.
template <class Element>
class FitRig {
 public:
  explicit FitRig(const Question<Element>& asked, bool deviates = true)
      : asked_(asked),
        vectors_(asked.vectors.size() * sizeof(Element)),
        given_(std::max<size_t>(asked.given.size(), 1) * sizeof(Float16)),
        scratch_(gpu::scratch_bytes(asked.sizes())),
        codebook_(book_bytes()),
        deviations_(book_bytes()),
        labels_(size_t{asked.count()} * sizeof(uint32_t)),
        records_((size_t{asked.settings.iterations} + 1) * sizeof(IterationRecord)),
        count_(sizeof(uint64_t)) {
    vectors_.upload(asked.vectors.data());
    if (!asked.given.empty()) given_.upload(asked.given.data());
    call_.sizes = asked.sizes();
    call_.settings = asked.settings;
    call_.metric = asked.metric;
    call_.bad = asked.bad;
    call_.vectors = vectors_.data();
    call_.type = kType<Element>;
    call_.given = asked.given.empty() ? nullptr : given_.data();
    call_.scratch = scratch_.data();
    call_.to = {reinterpret_cast<Float16*>(codebook_.data()),
                deviates ? reinterpret_cast<Float16*>(deviations_.data()) : nullptr,
                reinterpret_cast<uint32_t*>(labels_.data()), reinterpret_cast<IterationRecord*>(records_.data()),
                reinterpret_cast<uint64_t*>(count_.data())};
  }

  void enqueue() { fit_.enqueue(stream_, call_); }
  cudaGraphExec_t capture() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    checked(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    enqueue();
    checked(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    checked(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    checked(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return exec;
  }
  float time_of(cudaGraphExec_t exec) { // in ms
    cudaEvent_t begin = nullptr, end = nullptr;
    float ms = 0;
    checked(cudaEventCreate(&begin), "cudaEventCreate");
    checked(cudaEventCreate(&end), "cudaEventCreate");
    checked(cudaEventRecord(begin, stream_), "cudaEventRecord");
    checked(cudaGraphLaunch(exec, stream_), "cudaGraphLaunch");
    checked(cudaEventRecord(end, stream_), "cudaEventRecord");
    stream_.wait();
    checked(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return ms;
  }
  GivenFit ask(Way way) {
    way == Way::unrolled ? ::setenv("MILLRACE_CUDA_UNROLL", "1", 1) : ::unsetenv("MILLRACE_CUDA_UNROLL");
    if (way == Way::on_a_stream) {
      enqueue();
      stream_.wait();
    } else {
      const cudaGraphExec_t exec = capture();
      checked(cudaGraphLaunch(exec, stream_), "cudaGraphLaunch");
      stream_.wait();
      checked(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
    }
    ::unsetenv("MILLRACE_CUDA_UNROLL");
    return given();
  }

 private:
  size_t book_bytes() const { return size_t{asked_.sizes().anchors_max} * asked_.dimensions * sizeof(Float16); }
  template <class T>
  static std::vector<T> all_of(const GpuBytes& bytes) {
    std::vector<T> all(bytes.count() / sizeof(T));
    bytes.download(all.data());
    return all;
  }
  GivenFit given() const {
    GivenFit made;
    made.iterations = all_of<IterationRecord>(records_);
    made.labels = all_of<uint32_t>(labels_);
    made.codebook = all_of<Float16>(codebook_);
    made.deviations = all_of<Float16>(deviations_);
    return cut(std::move(made), all_of<uint64_t>(count_)[0], asked_);
  }

  const Question<Element>& asked_;
  GpuBytes vectors_, given_, scratch_, codebook_, deviations_, labels_, records_, count_;
  GpuStream stream_;
  gpu::FitCall call_;
  gpu::FitOnGpu fit_;
};

} // namespace millrace::codebook
