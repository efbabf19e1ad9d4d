// The steps of groups: give, entry and deal (group_plan.h). Private to runtime/plan.
#pragma once

#include <map>

#include "plan/expand.h"
#include "plan/group_plan.h"

namespace millrace::plan {

// For connect_edges(), which asks it for the two ends of each edge that carries items.
class GroupSteps {
 public:
  explicit GroupSteps(Expansion& all) : all_(all), draft_(all.draft), plan_(all.plan) {}

  // For an edge into a group: `input` of the stream's tick is part of its item. Returns the entry's output for it.
  uint32_t give(const DraftEdge& edge, const StepInput& input);
  // For an edge out of a group: the output of the stream's tick that gets the item's result.
  uint32_t result(const DraftEdge& edge);
  // Called last: makes each deal wait for all of its group.
  void finish();
  // The step that hands the edge's items to its group, and the input that has them. Valid after give().
  uint32_t give_step(const DraftEdge& edge) { return give_of(group_into(edge), edge); }

 private:
  uint32_t group_named(const std::string& name) const;
  uint32_t group_into(const DraftEdge& edge) const { return group_named(all_.target_of(edge).declared->group); }
  uint32_t group_out_of(const DraftEdge& edge) const { return group_named(all_.source_of(edge).declared->group); }
  uint32_t give_of(uint32_t group, const DraftEdge& edge);
  void begin(uint32_t group);
  uint32_t allowance(const GroupPlan& group, uint32_t stream_clock) const;
  bool lies_dense(const Output& output) const;
  bool leads_back(const GroupPlan& group) const;

  Expansion& all_;
  Draft& draft_;
  Plan& plan_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> entries_; // group's handler and flat input → the entry's output
  std::map<uint32_t, bool> leads_back_;                       // by group
  std::map<std::pair<uint32_t, uint32_t>, size_t> readers_;   // give and group's handler → index of its reader
};

} // namespace millrace::plan
