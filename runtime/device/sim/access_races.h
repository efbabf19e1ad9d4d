// Finds accesses to the same bytes that nothing puts in an order, one of the two a write, when they are submitted: what
// is ordered is known then, from the streams, the fences they wait for, and what is already done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"

namespace millrace::device {

// The submitting thread's. Commands of one stream are in order; a wait puts everything before its fence, and all that
// the fence's stream waited for until then, before what follows. Host threads order things too, by seeing a fence done
// before they submit: so what is done when another access comes is before it. A fence of another device may stand
// behind anything, so a wait for one counts as a wait for all: no race is made up, some are missed.
class AccessRaces {
 public:
  // Who touches bytes, as a sentence names it: a handler by its name, else what the command is.
  struct Party {
    const char* name;
    bool is_handler;
  };

  void add_stream(const Stream& stream);
  // After the wait was submitted.
  void on_wait(const Stream& stream, const Fence& fence);
  // What is wrong where an earlier access to some of the bytes, one of the two a write, is neither ordered before this
  // nor done; else "". Enters it as command `stream.issued`: called after it was submitted.
  std::string race(const Stream& stream, const Party& party, const Access& access);

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
  struct Entry {
    Party party;
    uint32_t stream;
    uint64_t sequence;
    const std::byte *begin, *end;
    bool writes;
  };

  bool over(const Entry& entry) const;

  std::vector<Lane> lanes_;
  std::vector<Entry> entries_; // not yet done, or not known to be; bounded by what may be under way
};

} // namespace millrace::device
