// What profilers and checkers are told: a nanosecond where none looks.
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

#include <vector>

#include "device/device.h"

namespace millrace::device::cuda {

class NvtxRange {
 public:
  explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
  ~NvtxRange() { nvtxRangePop(); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

// An arena of which a checker (compute-sanitizer's memcheck) takes only the named parts for memory: it reports what a
// kernel touches between two blocks. To be made once CUDA is there, and to be ended before the arena is freed.
class NvtxArena {
 public:
  NvtxArena(const Arena& arena, const std::vector<NamedBytes>& parts);
  ~NvtxArena();
  NvtxArena(const NvtxArena&) = delete;
  NvtxArena& operator=(const NvtxArena&) = delete;

 private:
  nvtxMemHeapHandle_t heap_ = nullptr;
};

} // namespace millrace::device::cuda
