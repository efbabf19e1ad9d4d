// The list of pinned host ranges.
#include "device/pinned_ranges.h"

#include <mutex>

namespace millrace::device {

void PinnedRanges::add(const std::byte* base, uint64_t bytes) {
  const std::unique_lock lock(mutex_);
  ranges_.push_back({base, bytes});
}

void PinnedRanges::remove(const std::byte* base) {
  const std::unique_lock lock(mutex_);
  std::erase_if(ranges_, [base](const Range& range) { return range.base == base; });
}

bool PinnedRanges::contains(const std::byte* address, uint64_t bytes) const {
  const std::shared_lock lock(mutex_);
  for (const Range& range : ranges_) {
    if (address < range.base) continue;
    const uint64_t offset = static_cast<uint64_t>(address - range.base);
    if (offset <= range.bytes && bytes <= range.bytes - offset) return true;
  }
  return false;
}

} // namespace millrace::device
