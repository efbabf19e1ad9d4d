// The other nodes of a pipeline as links need them: who they are, where they are reached, and which side dials.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "net/node_id.h"
#include "net/system/endpoint.h"
#include "observe/error.h"

namespace millrace::node {

struct PeerPlan {
  std::string name;
  std::optional<Error> missing; // why there can be no link to it: its id or its address is not known here
  net::NodeId id;
  bool is_id_declared = false;          // by the pipeline; else it stands in the list
  std::vector<net::Endpoint> endpoints; // to dial, in this order; empty: the peer dials
  bool dials() const { return !endpoints.empty(); }
};

// True if `by` dials `node`. Both sides have to decide alike, so the pipeline alone counts. If one of two nodes has an
// address in it, the other one dials. Otherwise the later one dials; the coordinator is the first.
bool is_dialled_by(const graph::Graph& graph, const std::string& node, const std::string& by);

// The ids and addresses of the other nodes, from the pipeline and from peers.txt in `folder`. `coordinator`: its
// addresses, instead of those that are known; empty: those. Every node has a link to the coordinator. Two others need
// one only if ticks cross between them, which the plan tells later. Throws Failure for a link to the coordinator:
// MR0807 if a node is not known, MR0802 if this one is to dial it and has no address of it; MR0105 if `coordinator` is
// given and this node does not dial it.
std::vector<PeerPlan> peers_of(const graph::Graph& graph, const std::string& node, const std::filesystem::path& folder,
                               const std::vector<net::Endpoint>& coordinator);

} // namespace millrace::node
