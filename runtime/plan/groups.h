// Groups of shared handlers while the plan is made. Private to runtime/plan.
#pragma once

#include "plan/draft.h"

namespace millrace::plan {

// Begins the plan of each group, and finds the stream that each edge into or out of a group is of. Throws Failure
// MR0325 for what cannot take items.
void find_groups(Draft& draft);
// Refuses a way out of a group and back into it within a tick (MR0325). Called once the graph is known to have no
// cycle.
void refuse_ways_back(const Draft& draft);
// Sets how each group takes its items. Called once the clocks have their modes. Throws Failure.
void settle_groups(Draft& draft);
// Sets the time that each group's firings are expected to take. Called once its handlers have their places. Throws
// Failure MR0418.
void price_groups(Draft& draft);
// Refuses a group over several nodes, and items that come from another node (MR0325).
void refuse_groups_over_nodes(const Draft& draft);

} // namespace millrace::plan
