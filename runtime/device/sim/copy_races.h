// Finds copies of the same bytes that nothing puts in an order, when they are submitted: what is ordered is known then,
// from the streams, the fences they wait for, and what is already done. Bodies do not say which bytes they touch, so
// they are not looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.h"

namespace millrace::device {

// The submitting thread's. Commands of one stream are in order; a wait puts everything before its fence, and all that
// the fence's stream waited for until then, before what follows. A fence of another device may stand behind anything,
// so a wait for one counts as a wait for all: no race is made up, some are missed.
class CopyRaces {
 public:
  void add_stream(const Stream& stream);
  // After the wait was submitted.
  void on_wait(const Stream& stream, const Fence& fence);
  // Whether an earlier access to some of the bytes, one of the two a write, is neither ordered before this nor done.
  // Enters it as command `stream.issued`: called after it was submitted.
  bool races(const Stream& stream, const std::byte* address, uint64_t bytes, bool writes);

 private:
  using Clock = std::vector<uint64_t>; // by stream: up to which command all is over before what follows
  struct Snapshot {
    uint64_t sequence; // holds for fences from here on
    Clock before;
  };
  struct Lane {
    const Stream* stream;
    std::vector<Snapshot> snapshots; // the last is the present
  };
  struct Access {
    uint32_t stream;
    uint64_t sequence;
    uintptr_t begin, end;
    bool writes;
  };

  bool over(const Access& access) const;

  std::vector<Lane> lanes_;
  std::vector<Access> accesses_; // not yet done, or not known to be; bounded by what may be under way
};

} // namespace millrace::device
