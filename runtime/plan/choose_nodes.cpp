// Joins machines, finds the nodes of each handler, and lets placement choose; see choose_nodes.h.
#include "plan/choose_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/draft.h"
#include "plan/facts.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

bool names_node(const std::string& domain) { return domain.find('/') != std::string::npos; }

// "cuda:0" of gpu → "gpu/cuda:0"
std::string full_name(const std::string& node, const std::string& domain) {
  return names_node(domain) ? domain : node + "/" + domain;
}

// The nodes that may run each handler of a draft, as its domains name them.
class NodesOf {
 public:
  NodesOf(const Draft& draft, const std::string& coordinator, const OfferedNodes& offered)
      : draft_(draft), coordinator_(coordinator), offered_(offered) {}

  std::vector<std::vector<std::string>> all() const {
    std::vector<std::vector<std::string>> nodes;
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      nodes.push_back(of(h));
      for (std::string& node : nodes.back())
        if (node == coordinator_) node.clear(); // the domains of this node have no name of a node
    }
    return nodes;
  }

 private:
  std::vector<std::string> of(uint32_t h) const {
    const DraftHandler& handler = draft_.handlers[h];
    if (handler.declared->inserted) return {}; // any
    if (!handler.declared->node.empty()) return {handler.declared->node};
    const auto offered = offered_.find(handler.declared->name);
    if (offered == offered_.end()) return {coordinator_};
    const bool is_here =
        std::find(offered->second.begin(), offered->second.end(), coordinator_) != offered->second.end();
    const bool stays = !may_move(*handler.info) || !has_source(handler.clock) || is_in_loop(h);
    return is_here && stays ? std::vector{coordinator_} : offered->second;
  }

  bool has_source(uint32_t clock) const {
    return std::any_of(draft_.handlers.begin(), draft_.handlers.end(),
                       [&](const DraftHandler& other) { return other.is_source() && other.clock == clock; });
  }

  bool is_in_loop(uint32_t h) const {
    std::vector<bool> reached(draft_.handlers.size(), false);
    std::vector<uint32_t> todo = {h};
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      for (const DraftEdge& edge : draft_.edges) {
        if (edge.source != at || reached[edge.target]) continue;
        reached[edge.target] = true;
        todo.push_back(edge.target);
      }
    }
    return reached[h];
  }

  const Draft& draft_;
  const std::string& coordinator_;
  const OfferedNodes& offered_;
};

} // namespace

Machine join_machines(const std::vector<NodeMachine>& machines, const std::vector<Hop>& links) {
  Machine joined;
  joined.workers = machines.at(0).machine.workers;
  joined.hops = links;
  std::vector<Domain> preferred;
  for (const auto& [node, machine] : machines) {
    const bool coordinates = node == machines[0].node;
    if (!coordinates) joined.workers_elsewhere[node] = machine.workers;
    const auto renamed = [&, &node = node](Domain domain) { // Clang 14 captures a structured binding by name alone
      domain.name = full_name(node, domain.name);
      domain.node = coordinates ? "" : node;
      return domain;
    };
    for (const uint32_t d : machine.order) preferred.push_back(renamed(machine.domains[d]));
    // A host that nobody asked for serves only what can run nowhere else.
    for (const Domain& domain : machine.domains)
      if (domain.is_host() && domain.node.empty()) joined.domains.push_back(renamed(domain));
    for (Hop hop : machine.hops) {
      const bool is_link = names_node(hop.from) || names_node(hop.to);
      if (is_link && !coordinates) continue; // the coordinator's word counts
      hop.from = full_name(node, hop.from);
      hop.to = full_name(node, hop.to);
      if (!hop.engine.empty()) hop.engine = full_name(node, hop.engine);
      joined.hops.push_back(std::move(hop));
    }
    for (BodyCost body : machine.bodies) {
      body.domain = full_name(node, body.domain);
      joined.bodies.push_back(std::move(body));
    }
    for (LaunchCost launch : machine.launches) {
      launch.domain = full_name(node, launch.domain);
      joined.launches.push_back(std::move(launch));
    }
  }
  joined.domains.erase(joined.domains.begin()); // the one that every machine begins with
  for (const Domain& domain : preferred)
    if (!domain.is_host()) joined.domains.push_back(domain);
  joined.order.clear();
  for (const Domain& domain : preferred) joined.order.push_back(*find_domain(joined.domains, domain.name));
  return joined;
}

bool may_move(const plugin::HandlerInfo& info) {
  bool reads = false, makes = false;
  for (const auto& port : info.ports) {
    (port.is_input() ? reads : makes) = true;
    if (port.raw.accepts.kind == MR_KIND_OBJECT) return false;
  }
  const bool has_files = std::any_of(info.params.begin(), info.params.end(), [](const auto& param) {
    return (param.raw.flags & (MR_PARAM_READS_PATH | MR_PARAM_WRITES_PATH)) != 0;
  });
  return reads && makes && !has_files;
}

ChosenNodes choose_nodes(const graph::Graph& graph, const Facts& facts, const Types& types, const Machine& joined,
                         const Options& options, const OfferedNodes& offered) {
  ChosenNodes chosen;
  const std::string coordinator = graph::node_names(graph).at(0);
  Options over_all = options;
  over_all.nodes.clear(); // one machine, as far as places go
  over_all.node = 0;
  over_all.places.clear();
  settle_formats(graph, facts, types, joined, over_all, [&](Draft& draft) {
    draft.nodes_of = NodesOf(draft, coordinator, offered).all();
    place(draft);
    for (size_t h = 0; h < graph.handlers.size(); ++h) {
      const DraftHandler& handler = draft.handlers[h];
      const Domain& domain = draft.plan.domains[handler.domain];
      if (!handler.declared->node.empty() || draft.nodes_of[h] == std::vector<std::string>{""}) continue;
      chosen.handlers.push_back(
          {handler.declared->name, domain.node.empty() ? coordinator : domain.node, own_name(domain), handler.reason});
      chosen.notes.push_back(fmt::format("{} runs on {}: {}", handler.declared->name, domain.name, handler.reason));
    }
    chosen.notes.insert(chosen.notes.end(), draft.plan.notes.begin(), draft.plan.notes.end());
  });
  return chosen;
}

} // namespace millrace::plan
