// Which host memory is pinned: the devices of one runtime share one list, so that each can tell a copy that runs by
// itself from one that would secretly wait for the host (asynchronous copies from pageable memory, semantics.md 4.10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <vector>

namespace millrace::device {

// Any thread. Ranges come and go with arenas and do not overlap.
class PinnedRanges {
 public:
  void add(const std::byte* base, uint64_t bytes);
  void remove(const std::byte* base);
  // Whether all of it lies in one range.
  bool contains(const std::byte* address, uint64_t bytes) const;

 private:
  struct Range {
    const std::byte* base;
    uint64_t bytes;
  };
  mutable std::shared_mutex mutex_; // asked by simulated devices only, for each copy
  std::vector<Range> ranges_;
};

} // namespace millrace::device
