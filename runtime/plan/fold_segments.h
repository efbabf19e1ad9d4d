// The segments of a plan, and their steps, as its printed forms show them: once for all streams for which they are
// alike. Private to runtime/plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/fold.h"
#include "plan/plan_words.h"

namespace millrace::plan {

struct FoldedSegment {
  std::vector<uint32_t> segments;           // alike but for stream and worker
  std::vector<std::vector<uint32_t>> lines; // steps that are shown as one, of all these segments
  std::string streams;                      // "2 streams: gate7, hall"; "" if nothing needs to say which
};

// All but the lanes after the first. `named`: the plan named by template; `words`: its words.
std::vector<FoldedSegment> fold_segments(const Plan& plan, const Plan& named, const PlanWords& words,
                                         const TemplateNames& names);

} // namespace millrace::plan
