// Names edges as the pipeline file writes them; see written_edges.h.
#include "exec/written_edges.h"

#include "graph/unfold.h"

namespace millrace::exec {

WrittenEdges::WrittenEdges(const Epoch& epoch) : epoch_(epoch) {
  if (epoch.graph.streams.empty()) return;
  for (const plan::EdgePlan& edge : epoch.plan.edges) ++readers_[{edge.from, graph::written_name(edge.to)}];
}

std::pair<std::string, std::string> WrittenEdges::names_of(const plan::EdgePlan& edge) const {
  const std::string from = graph::written_name(edge.from), to = graph::written_name(edge.to);
  if (from == edge.from) return {from, to};
  const auto index = static_cast<size_t>(&edge - epoch_.plan.edges.data());
  const bool is_list = index < epoch_.graph.edges.size() && !epoch_.graph.edges[index].over.empty();
  if (is_list) return {from, to.substr(0, to.find('['))};
  const bool has_items = index < epoch_.graph.edges.size() && !epoch_.graph.edges[index].item_of.empty();
  if (has_items) return {from, to};
  const bool is_outside = to == edge.to;
  return {is_outside || readers_.at({edge.from, to}) > 1 ? edge.from : from, to};
}

} // namespace millrace::exec
