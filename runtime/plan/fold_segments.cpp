// Folds segments that are alike for several streams, and their steps; see fold_segments.h.
#include "plan/fold_segments.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::plan {

namespace {

// The name by which steps are alike.
std::string name_of_step(const Plan& named, uint32_t s) {
  std::string name = named.steps[s].name;
  for (const AccessPlan& access : named.accesses)
    if (access.step == s) name += fmt::format(" reads {} in {}", access.input, named.domains[access.domain].name);
  return name;
}

} // namespace

std::vector<FoldedSegment> fold_segments(const Plan& plan, const Plan& named, const PlanWords& words,
                                         const TemplateNames& names) {
  std::vector<uint32_t> shown;
  std::vector<Row> rows;
  for (uint32_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    if (segment.lane > 0) continue; // a copy of one that is shown
    shown.push_back(s);
    Row row;
    row.stream = names.stream_of_segment(plan, segment);
    if (row.stream.is_one()) {
      row.family = name_of_step(named, segment.steps[0]);
      row.key = words.segment_words(segment, "");
      for (const uint32_t step : segment.steps) row.key += "\n" + name_of_step(named, step);
    }
    rows.push_back(std::move(row));
  }
  std::vector<FoldedSegment> folded;
  for (const Fold& alike : fold(rows, names)) {
    FoldedSegment& made = folded.emplace_back();
    for (const size_t r : alike.rows) made.segments.push_back(shown[r]);
    const std::vector<uint32_t>& steps = plan.segments[made.segments[0]].steps;
    if (!alike.is_one()) {
      if (!alike.is_rest) made.streams = stream_words(alike, rows, names);
      made.lines.resize(steps.size());
      for (const uint32_t s : made.segments)
        for (size_t i = 0; i < steps.size(); ++i) made.lines[i].push_back(plan.segments[s].steps[i]);
      continue;
    }
    std::vector<Row> own; // one segment may have the steps of several streams
    for (const uint32_t s : steps) {
      const std::string name = name_of_step(named, s);
      own.push_back({name, name, names.stream_of_step(plan, plan.steps[s])});
    }
    for (const Fold& line : fold(own, names)) {
      made.lines.emplace_back();
      for (const size_t i : line.rows) made.lines.back().push_back(steps[i]);
    }
  }
  return folded;
}

} // namespace millrace::plan
