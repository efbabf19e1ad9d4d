// Groups of handlers that work item by item, for all streams of a set. See plan.h.
//
//   give    in each stream's pace: hands the tick's inputs to the group as an item, and gets its outputs back later
//   entry   in the group's pace: the inputs of a firing's items
//   deal    last in the group's pace: gives each item's outputs back to the tick that it is of
//
// The pace of a group counts *rows*: a firing takes `items_max` ordinals, of which it fills as many as it has items.
// So a handler of a group runs on an item as it runs on a tick, and what it makes has a slot and a block of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/none.h"

namespace millrace::plan {

// The most firings of a group that are under way at a time.
inline constexpr uint32_t kFiringsMax = 2;

// free: what waits is taken whenever the group is free. fixed: so many, or the oldest has waited. learnt: as few as the
// load allows, within a budget.
enum class BatchRule { free, fixed, learnt };

struct GroupPlan {
  std::string name, set;
  uint32_t clock = 0; // its own; a pace of the same number has its steps
  uint32_t entry = kNone, deal = kNone;
  std::vector<uint32_t> handlers; // in the order of the text
  std::vector<uint32_t> gives;    // by stream: step; kNone: that stream gives it nothing
  uint32_t items_max = 1;         // rows of a firing, a power of two
  uint32_t in_flight = 1;         // firings
  BatchRule rule = BatchRule::free;
  uint32_t size = 0;     // fixed: items that are waited for; free: the most that are taken
  int64_t wait_ns = 0;   // fixed
  int64_t budget_ns = 0; // from an item's arrival to its result; 0: free, which has none
  bool drop_late = false;
  bool of_rows = false;
  std::vector<int64_t> curve_ns; // the time of a firing of 1, 2, 4, … items, as expected; empty: not known
};

struct Plan;
// The group of this clock.
const GroupPlan& group_of(const Plan& plan, uint32_t clock);

} // namespace millrace::plan
