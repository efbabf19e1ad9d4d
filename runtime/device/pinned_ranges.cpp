// The list of pinned host ranges.
#include "device/pinned_ranges.h"

#include <mutex>

namespace millrace::device {

std::string PinnedRanges::add(const std::byte* base, uint64_t bytes) {
  const std::unique_lock lock(mutex_);
  std::string wrong = locker_ ? locker_->lock_pages(base, bytes) : "";
  if (wrong.empty()) ranges_.push_back({base, bytes});
  return wrong;
}

void PinnedRanges::remove(const std::byte* base) {
  const std::unique_lock lock(mutex_);
  const size_t erased = std::erase_if(ranges_, [base](const Range& range) { return range.base == base; });
  if (erased > 0 && locker_) locker_->unlock_pages(base);
}

std::string PinnedRanges::set_locker(PageLocker* locker) {
  const std::unique_lock lock(mutex_);
  if (locker_)
    for (const Range& range : ranges_) locker_->unlock_pages(range.base);
  locker_ = locker;
  std::string wrong;
  if (locker_)
    for (const Range& range : ranges_)
      if (wrong.empty()) wrong = locker_->lock_pages(range.base, range.bytes);
  return wrong;
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
