// A libtorch without CUDA; see gpu.h.
#include <stdexcept>

#include "plugins/model/torch/gpu.h"

namespace millrace::model::libtorch {

bool has_gpu() { return false; }

std::unique_ptr<Gpu> make_gpu(const GpuMemory&) { throw std::logic_error("this libtorch computes on the CPU alone"); }

} // namespace millrace::model::libtorch
