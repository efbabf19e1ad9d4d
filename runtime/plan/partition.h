// Cuts the steps of a plan into segments once more, for a run that has measured its handlers.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/pace.h"

namespace millrace::plan {

struct Plan;

// Cuts the segments of a plan once more, now that handlers were measured (semantics.md 5.2). `costs_ns`: by handler, 0
// if not measured; `stays`: by segment. Segments that may not move (moves()) or that stay do not change, nor do the
// homes of pinned segments. Windows grow as far as their room goes.
struct Cut {
  std::vector<Segment> segments;
  std::vector<uint32_t> windows; // by pace
};
Cut cut_again(const Plan& plan, const std::vector<int64_t>& costs_ns, const std::vector<bool>& stays);
// True if another cut may change this segment: any of the host's workers may run it.
bool moves(const Plan& plan, const Segment& segment);

} // namespace millrace::plan
