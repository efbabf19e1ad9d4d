// Which host memory is pinned: the devices of one runtime share one list, so that each can tell a copy that runs by
// itself from one that would secretly wait for the host (asynchronous copies from pageable memory, semantics.md 4.10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <string>
#include <vector>

namespace millrace::device {

// Who locks pages where a real device copies by itself.
struct PageLocker {
  virtual ~PageLocker() = default;
  // What went wrong; "": nothing.
  virtual std::string lock_pages(const std::byte* base, uint64_t bytes) = 0;
  // False: they stay locked, as with a device that never answers, and it may still write there.
  virtual bool unlock_pages(const std::byte* base) = 0;
};

// Any thread. Ranges come and go with arenas and do not overlap.
class PinnedRanges {
 public:
  // What went wrong with locking its pages; "": nothing, and it is in the list.
  std::string add(const std::byte* base, uint64_t bytes);
  // False: its pages stay locked, so its memory must stay mapped.
  [[nodiscard]] bool remove(const std::byte* base);
  // Whether all of it lies in one range.
  bool contains(const std::byte* address, uint64_t bytes) const;
  // From now on pages are locked by it, those of the list too; null: no more, and all are unlocked that can be. Without
  // one a range is pinned in name alone, which is enough for simulated devices.
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

  mutable std::shared_mutex mutex_; // asked by simulated devices only, for each copy
  std::vector<Range> ranges_;
  PageLocker* locker_ = nullptr;
};

} // namespace millrace::device
