// The policy of an edge for which the pipeline gives none and its reader's port has one (MR_PORT_NEWEST).
#include "plan/draft.h"

namespace millrace::plan {

void use_ports_policy(Draft& draft, DraftEdge& edge, uint32_t port_flags) {
  const graph::Edge& declared = *edge.declared;
  const bool says_nothing = !declared.has_policy && declared.policy == graph::Policy::sync && declared.delay == 0 &&
                            declared.gap == 0 && !declared.initial_empty && declared.over.empty() &&
                            declared.item_of.empty();
  if (!(port_flags & MR_PORT_NEWEST) || !says_nothing || draft.handlers[edge.target].takes_items) return;
  graph::Edge& own = draft.own_policies.emplace_back(declared);
  own.policy = graph::Policy::queue;
  own.depth = 1;
  own.full = graph::Full::drop_oldest;
  edge.declared = &own;
  edge.has_ports_policy = true;
}

} // namespace millrace::plan
