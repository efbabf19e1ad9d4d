// The other nodes of a pipeline as links need them: who they are, where they are reached, and which side dials.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "net/node_id.h"
#include "net/system/endpoint.h"

namespace millrace::node {

struct PeerPlan {
  std::string name;
  net::NodeId id;
  std::vector<net::Endpoint> endpoints; // to dial, in this order; empty: the peer dials
  bool dials() const { return !endpoints.empty(); }
};

// Both sides have to decide alike, so only the pipeline counts: if one of two nodes has an address there, the other one
// dials. Else the one that comes later dials, and the coordinator comes first.
bool is_dialled_by(const graph::Graph& graph, const std::string& node, const std::string& by);

// The ids and addresses of the other nodes, from the pipeline and from peers.txt in `folder`. `coordinator`: its
// addresses, instead of those that are known; empty: those. Throws Failure: MR0807 for one that is not known, MR0802
// for one that this node is to dial and has no address of, MR0105 if `coordinator` is given and this node does not dial
// it.
std::vector<PeerPlan> peers_of(const graph::Graph& graph, const std::string& node, const std::filesystem::path& folder,
                               const std::vector<net::Endpoint>& coordinator);

} // namespace millrace::node
