// Finds races at submission: two accesses to the same bytes, one of the two a write, that nothing orders. The order is
// known then, from the streams, the fences that they wait for, and the commands that are already done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"

namespace millrace::device {

// One thread at a time uses it. Commands of one stream are in order. A wait orders what follows it after everything
// before its fence, and after everything that the fence's stream had waited for until then. Host threads order commands
// too, because they see a fence done before they submit; so a command that is done when another access is submitted
// comes before that access. A fence of another device may depend on any command, so a wait for one counts as a wait for
// all commands: no false race is reported, but some races are missed.
class AccessRaces {
 public:
  // The party that touches bytes, as a sentence names it: a handler by its name, any other command by its kind.
  struct Party {
    const char* name;
    bool is_handler;
  };

  void add_stream(const Stream& stream);
  // Called after the wait was submitted.
  void on_wait(const Stream& stream, const Fence& fence);
  // Describes the race if an earlier access to some of the bytes, one of the two a write, is neither ordered before
  // this one nor done; otherwise "". Enters the access as command `stream.issued`, so it is called after the command
  // was submitted.
  std::string race(const Stream& stream, const Party& party, const Access& access);

 private:
  using Clock = std::vector<uint64_t>; // by stream: all commands up to this one are over before what follows
  struct Snapshot {
    uint64_t sequence; // holds for fences from this sequence on
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
  std::vector<Entry> entries_; // accesses that are not known to be done; bounded by what may be under way
};

} // namespace millrace::device
