// Ranges that a profiler shows; a nanosecond where none looks.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace millrace::device::cuda {

class NvtxRange {
 public:
  explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
  ~NvtxRange() { nvtxRangePop(); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

} // namespace millrace::device::cuda
