// Kernels of points.links; see library.h.
#pragma once

#include <millrace/payload/marks.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "handlers/gpu/device_list.h"
#include "handlers/gpu/kept_count.h"
#include "handlers/gpu/library.h"
#include "handlers/gpu/link_rule.h"

namespace millrace::handlers::gpu {

// Pairs of a point and one of its nearest that a block looks at when links are given.
inline constexpr uint32_t kPairsOfBlock = 512;
inline uint64_t pair_blocks(uint64_t points, uint32_t k) { return (points * k + kPairsOfBlock - 1) / kPairsOfBlock; }

// Lists that have room for no more points than this are joined by one kernel, with a warp for each point, if the rule
// has no memory and no degree_max.
inline constexpr uint32_t kFewPoints = 1'024, kFewPointsOfBlock = 8;
inline uint64_t few_blocks(uint64_t points) { return (points + kFewPointsOfBlock - 1) / kFewPointsOfBlock; }

// Words of LinkState::sums.
inline uint64_t link_sums(uint64_t points, uint32_t k) {
  return std::max(pair_blocks(points, k), points <= kFewPoints ? 2 * few_blocks(points) : 0);
}

// State of the handler, in device memory.
struct LinkState {
  LinkTurn* turn;
  uint64_t* sums;  // link_sums(): what blocks tell each other, each with the turn in which it does
  uint64_t* slots; // PlaceTable::slots_for()
  uint32_t slot_mask;
  PastLink* past; // two lists of `most` each; null if the rule remembers nothing
};

struct LinkKernels {
  // Joins the points. At most `most` links are given; how many more there were is added to the first word of `scratch`,
  // whose size is lay_out_work().bytes (link_work.h).
  const char* (*join)(void* stream, const DeviceList<Point>& points, const LinkRule& rule, const LinkState& state,
                      void* scratch, uint32_t most, const MadeList<Link>& links);
  KeptCount left_out; // links
};

// The table of the CUDA module, defined in link_kernels.cu.
const LinkKernels& link_kernels();

} // namespace millrace::handlers::gpu
