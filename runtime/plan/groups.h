// Groups of shared handlers while the plan is made. Private to runtime/plan.
#pragma once

#include "plan/draft.h"

namespace millrace::plan {

// True if the edge brings the items of a further stream to an input that has an edge of the same text.
bool is_more_of_one(const Draft& draft, const DraftEdge& edge, uint32_t input);
// Refuse an edge from all streams (MR0323): into a list without a policy, and by a policy into an input that takes one
// edge.
[[noreturn]] void refuse_list_of_items(const DraftHandler& target, const std::string& port, const graph::Edge& edge);
[[noreturn]] void refuse_list_at_one(const DraftHandler& target, const std::string& port, const graph::Edge& edge);
// Refuses an edge that brings a group's input items of another format than the first stream's (MR0402).
[[noreturn]] void refuse_formats_of_items(const Draft& draft, const DraftEdge& edge, const std::string& differs,
                                          const mr_format& first, const mr_format& other);
// Begins the plan of each group, and finds the stream that each edge into or out of a group is of. Throws Failure
// MR0325 for what cannot take items.
void find_groups(Draft& draft);
// Refuses a way out of a group and back into it within a tick (MR0325). Called once the graph is known to have no
// cycle.
void refuse_ways_back(const Draft& draft);
// Sets how each group takes its items. Called once the clocks have their modes. Throws Failure.
void settle_groups(Draft& draft);
// Sets the time that each group's firings are expected to take. Called once its handlers have their domains. Throws
// Failure MR0418.
void price_groups(Draft& draft);
// Refuses a stream whose value is in another domain than those of the first (MR0325).
void check_domain_of_item(const Draft& draft, const DraftEdge& edge, uint32_t first, uint32_t domain);
// Refuses a group over several nodes, and items that come from another node (MR0325).
void refuse_groups_over_nodes(const Draft& draft);

} // namespace millrace::plan
