// The state that simulated devices share: the memory of each, and the notification that a word of one has moved.
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
    const std::byte* seen; // as the host sees it
    std::byte* working;    // as bodies and copies see it
    uint64_t bytes;
    std::string domain;
  };
  void add(Range range);
  void remove(const std::byte* seen);
  // Returns the address at which a body or copy finds these bytes, and sets `domain` to their device's. Null if no
  // device has all of them.
  std::byte* find(const std::byte* seen, uint64_t bytes, std::string& domain) const;

  // Notified by threaded devices when a word has moved, for devices whose streams wait for that word.
  EventCount moved;

 private:
  mutable std::shared_mutex mutex_;
  std::vector<Range> ranges_;
};

} // namespace millrace::device
