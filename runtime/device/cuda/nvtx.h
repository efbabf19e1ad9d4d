// Tells profilers and checkers about bodies and arenas; costs a nanosecond if none is attached.
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

// Tells a checker (compute-sanitizer's memcheck) that only the named parts of an arena are memory, so that it reports a
// kernel that touches bytes between two blocks. Make it once CUDA is there, and end it before the arena is freed.
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
