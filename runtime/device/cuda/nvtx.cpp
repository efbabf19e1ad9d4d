// Names arenas and their blocks for checkers; see nvtx.h.
#include "device/cuda/nvtx.h"

#include <string>

namespace millrace::device::cuda {
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("millrace");
  return domain;
}

// compute-sanitizer takes 49 characters of ASCII.
constexpr size_t kNameMax = 49;

std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (plain.size() < kNameMax) plain += c >= ' ' && c <= '~' ? c : '?';
  return plain;
}

void name_regions(const std::vector<NamedBytes>& parts) {
  std::vector<nvtxMemRegionNameDesc_t> names(parts.size());
  std::vector<std::string> texts;
  for (const NamedBytes& part : parts) texts.push_back(plain_name(part.name));
  for (size_t p = 0; p < parts.size(); ++p) {
    names[p].regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER;
    names[p].nameType = NVTX_MESSAGE_TYPE_ASCII;
    names[p].region.pointer = parts[p].address;
    names[p].name.ascii = texts[p].c_str();
  }
  nvtxMemRegionsNameBatch_t batch{};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof batch;
  batch.regionCount = names.size();
  batch.regionElementSize = sizeof names[0];
  batch.regionElements = names.data();
  nvtxMemRegionsName(domain(), &batch);
}

} // namespace

NvtxArena::NvtxArena(const Arena& arena, const std::vector<NamedBytes>& parts) {
  const nvtxMemVirtualRangeDesc_t whole{arena.bytes, arena.base};
  nvtxMemHeapDesc_t heap{};
  heap.extCompatID = NVTX_EXT_COMPATID_MEM;
  heap.structSize = sizeof heap;
  heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
  heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  heap.typeSpecificDescSize = sizeof whole;
  heap.typeSpecificDesc = &whole;
  heap_ = nvtxMemHeapRegister(domain(), &heap);
  if (parts.empty()) return;
  std::vector<nvtxMemVirtualRangeDesc_t> ranges;
  for (const NamedBytes& part : parts) ranges.push_back({part.bytes, part.address});
  nvtxMemRegionsRegisterBatch_t batch{};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof batch;
  batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  batch.heap = heap_;
  batch.regionCount = ranges.size();
  batch.regionDescElementSize = sizeof ranges[0];
  batch.regionDescElements = ranges.data();
  nvtxMemRegionsRegister(domain(), &batch);
  name_regions(parts);
}

NvtxArena::~NvtxArena() { nvtxMemHeapUnregister(domain(), heap_); }

} // namespace millrace::device::cuda
