// The memory of values: outputs, which have a slot for each tick in flight, and the rings of blocks that hold their
// bytes. See plan.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/abi.h"
#include "plan/none.h"

namespace millrace::plan {

// One output of a step: a slot for each tick in flight.
struct Output {
  uint32_t step = 0;
  uint32_t port = 0;       // flat index within the step
  std::string name;        // "video", for reports
  uint32_t domain = 0;     // the domain of its bytes
  mr_format format{};      // capacity, not extent
  uint32_t origin = kNone; // entry, resolve: the output whose buffers pass through
  uint32_t pack = kNone;   // its blocks lie beside those of others of this pack, so that one copy moves them
  uint32_t ring = kNone;   // its blocks; an output that forwards or writes in place shares its input's
  uint32_t retain = 0;     // ticks that a value outlives its own, by `delay`
  int32_t forwards = -1;   // step input whose buffer it may repeat
  int32_t in_place = -1;   // step input whose buffer it is written over
  bool owns = true;        // has a ring of its own
  bool lasting = false;    // a handler's value counts until its successor comes (3.7)
  bool kept = false;       // such a value's copy on a device: the copy step chooses between two blocks by itself
  bool connected = false;
};

// Blocks of one output, in one domain.
struct Ring {
  uint32_t output = 0;
  uint32_t domain = 0;
  uint32_t length = 1;
  bool dynamic = false;
  uint64_t capacity = 0;
  bool pinned = false;
  bool dense = false; // in a group's pace: the items of a firing may lie side by side, over the room of all its blocks
  bool lasting = false;  // its values count until their successors come: a block has pages while in use
  uint32_t pack = kNone; // rings of one pack and domain lie block beside block, so that one copy moves all of a tick
  std::vector<std::string> reasons; // "3 in flight", "1 held by latest", …: the annotated sum

  // Those that take memory at a time: of a lasting value it and its successor.
  uint32_t blocks_counted() const { return lasting && length > 2 ? 2 : length; }
};

// The pages of smaller blocks stay when nobody reads them any more.
inline constexpr uint64_t kPagesGivenBackMin = 1 << 20;

// A value this large fits into no memory: a host has 47 bits of addresses. Sums over all rings stay within 64 bits.
inline constexpr uint64_t kBytesMax = uint64_t{1} << 47;
// The most bytes that a value of this format needs after its mr_value, saturated at kBytesMax; UINT64_MAX if unknown.
uint64_t capacity_of(const mr_format& format);

} // namespace millrace::plan
