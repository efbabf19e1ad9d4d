// The list of pinned host memory, shared by the devices of one runtime. With it a device can tell a copy that runs by
// itself from one that would secretly wait for the host (asynchronous copies from pageable memory, semantics.md 4.10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <string>
#include <vector>

namespace millrace::device {

// Locks host pages, so that a real device can copy from and to them by itself.
struct PageLocker {
  virtual ~PageLocker() = default;
  // Returns what went wrong; "" if nothing did.
  virtual std::string lock_pages(const std::byte* base, uint64_t bytes) = 0;
  // False if they stay locked, as with a device that never answers; it may still write there.
  virtual bool unlock_pages(const std::byte* base) = 0;
};

// Any thread. Ranges come and go with arenas and do not overlap.
class PinnedRanges {
 public:
  // Returns what went wrong when its pages were locked. "": nothing, and the range is in the list.
  std::string add(const std::byte* base, uint64_t bytes);
  // False if its pages stay locked; its memory must then stay mapped.
  [[nodiscard]] bool remove(const std::byte* base);
  // True if all of it lies in one range.
  bool contains(const std::byte* address, uint64_t bytes) const;
  // From now on `locker` locks pages, those of ranges in the list too. Null: pages are locked no more, and all are
  // unlocked that can be. Without a locker a range is pinned in name alone, which is enough for simulated devices.
  // Returns what went wrong; "" if nothing did.
  std::string set_locker(PageLocker* locker);

 private:
  enum class Pages { unlocked, locked, stay_locked };
  struct Range {
    const std::byte* base;
    uint64_t bytes;
    Pages pages = Pages::unlocked;
  };
  std::string lock(Range& range);
  void unlock(Range& range);

  mutable std::shared_mutex mutex_; // only simulated devices call contains(), for each copy
  std::vector<Range> ranges_;
  PageLocker* locker_ = nullptr;
};

} // namespace millrace::device
