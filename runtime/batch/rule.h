// A rule says when a group fires, and with how many items. It sees the state as numbers and keeps no list of items.
#pragma once

#include <cstdint>
#include <limits>

#include "batch/forecast.h"

namespace millrace::batch {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max(), kAlways = std::numeric_limits<int64_t>::min();

// The state on which a rule decides. There is at least one item, and room for one more firing.
struct Waiting {
  int64_t now_ns;
  uint32_t rows;         // places that the waiting items take
  int64_t oldest_ns;     // when the item that is served next was given
  int64_t deadline_ns;   // its deadline, with its stream's priority
  uint32_t under_way;    // firings
  int64_t due_ns;        // the earliest time at which an item that is under way must be done; kNever: nothing is
  bool a_stream_is_full; // it has used its allowance, so an item of it may be refused while others are waited for
  const Forecast& forecast;
};

struct Choice {
  // Items that would be done by then at the earliest, and must be done before, are dropped. kAlways: none.
  int64_t drop_due_before_ns = kAlways;
  // Fire the items that fill at most so many places, in the smallest bucket with room for them. 0: fire nothing yet.
  uint32_t fire = 0;
  // If nothing is fired: choose again at this time, or earlier where the state changes. kNever: only then.
  int64_t look_again_ns = kNever;
  // If `fire` is 0: so many fire at once if no stream can give an item before look_again_ns. 0: they wait all the same.
  uint32_t fire_if_alone = 0;
};

struct FiringEnd {
  int64_t now_ns;
  uint32_t rows, bucket_items;
  int64_t oldest_ns; // when its oldest item was given
  int64_t due_ns;    // when the first of its items was due
};

// Called under the caller's lock, as the collector is. None allocates.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual Choice choose(const Waiting& waiting) const = 0;
  virtual void gave(int64_t /*now_ns*/, uint32_t /*rows*/, const Forecast&) {}
  virtual void ended(const FiringEnd& /*end*/, const Forecast&) {}
};

} // namespace millrace::batch
