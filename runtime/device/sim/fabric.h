// What simulated devices know of each other: whose memory lies where, and that a word of one has moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <string>
#include <vector>

#include "device/event_count.h"

namespace millrace::device {

// Any thread. Ranges come with arenas and go with their device.
class SimFabric {
 public:
  struct Range {
    const std::byte* seen; // by the host
    std::byte* working;    // by bodies and copies
    uint64_t bytes;
    std::string domain;
  };
  void add(Range range);
  void remove(const std::byte* seen);
  // Where these bytes are for a body or copy, and in whose memory; null where they are nobody's.
  std::byte* find(const std::byte* seen, uint64_t bytes, std::string& domain) const;

  // Rung by threaded devices when a word has moved, for those whose streams wait for it.
  EventCount moved;

 private:
  mutable std::shared_mutex mutex_;
  std::vector<Range> ranges_;
};

} // namespace millrace::device
