// Names edges as the pipeline file writes them; see written_edges.h.
#include "exec/written_edges.h"

#include "graph/unfold.h"
#include "plan/plan.h"

namespace millrace::exec {

WrittenEdges::WrittenEdges(const PlanRun& planned) : planned_(planned) {
  if (planned.graph.streams.empty()) return;
  for (const plan::EdgePlan& edge : planned.plan.edges) ++readers_[{edge.from, graph::written_name(edge.to)}];
}

std::pair<std::string, std::string> WrittenEdges::names_of(const plan::EdgePlan& edge) const {
  const std::string from = graph::written_name(edge.from), to = graph::written_name(edge.to);
  if (from == edge.from) return {from, to};
  const auto index = static_cast<size_t>(&edge - planned_.plan.edges.data());
  const bool is_list = index < planned_.graph.edges.size() && !planned_.graph.edges[index].over.empty();
  if (is_list) return {from, to.substr(0, to.find('['))};
  const bool has_items = index < planned_.graph.edges.size() && !planned_.graph.edges[index].item_of.empty();
  if (has_items) return {from, to};
  const bool is_outside = to == edge.to;
  return {is_outside || readers_.at({edge.from, to}) > 1 ? edge.from : from, to};
}

} // namespace millrace::exec
