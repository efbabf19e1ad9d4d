// The list of pinned host ranges.
#include "device/pinned_ranges.h"

#include <algorithm>
#include <mutex>

namespace millrace::device {

std::string PinnedRanges::add(const std::byte* base, uint64_t bytes) {
  const std::unique_lock guard(mutex_);
  Range range{base, bytes};
  std::string wrong = lock(range);
  if (wrong.empty()) ranges_.push_back(range);
  return wrong;
}

bool PinnedRanges::remove(const std::byte* base) {
  const std::unique_lock guard(mutex_);
  const auto found =
      std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& range) { return range.base == base; });
  if (found == ranges_.end()) return true;
  unlock(*found);
  const bool unlocked = found->pages == Pages::unlocked;
  ranges_.erase(found);
  return unlocked;
}

std::string PinnedRanges::set_locker(PageLocker* locker) {
  const std::unique_lock guard(mutex_);
  for (Range& range : ranges_) unlock(range);
  locker_ = locker;
  std::string wrong;
  for (Range& range : ranges_)
    if (wrong.empty()) wrong = lock(range);
  return wrong;
}

// Pages that an earlier locker left locked cannot be locked again, and need not be.
std::string PinnedRanges::lock(Range& range) {
  if (!locker_ || range.pages != Pages::unlocked) return "";
  std::string wrong = locker_->lock_pages(range.base, range.bytes);
  if (wrong.empty()) range.pages = Pages::locked;
  return wrong;
}

void PinnedRanges::unlock(Range& range) {
  if (range.pages != Pages::locked) return;
  range.pages = locker_->unlock_pages(range.base) ? Pages::unlocked : Pages::stay_locked;
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
