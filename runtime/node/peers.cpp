// Finds the other nodes of a pipeline; see peers.h.
#include "node/peers.h"

#include <algorithm>

#include "net/system/known_peers.h"
#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::node {

namespace {

const graph::Node& find(const graph::Graph& graph, const std::string& name) {
  return *std::find_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const graph::Node& node) { return node.name == name; });
}

net::NodeId id_of(const graph::Node& node, const net::KnownPeers& known, const std::filesystem::path& folder) {
  const net::KnownPeer* const peer = known.find(node.name);
  net::NodeId id;
  net::NodeIdFault fault;
  if (node.id.empty()) {
    if (peer) return peer->id;
    throw Failure(Error{
        code::unknown_peer,
        "node " + node.name + " is not known here",
        node.place,
        {"`millrace identity` says its id on that machine", "known nodes are in " + (folder / "peers.txt").string()},
        "",
        "millrace nodes add " + node.name + " ID ADDRESS"});
  }
  if (!net::parse_node_id(node.id, id, fault))
    throw Failure(Error{code::bad_command_line,
                        "the id of node " + node.name + " " + net::describe(fault),
                        node.place,
                        {"an id is mr: and 54 letters, as `millrace identity` says it on that machine"},
                        "",
                        ""});
  return id;
}

} // namespace

bool is_dialled_by(const graph::Graph& graph, const std::string& node, const std::string& by) {
  const bool has_address = !find(graph, node).address.empty(), by_has = !find(graph, by).address.empty();
  if (has_address != by_has) return has_address;
  const std::vector<std::string> names = graph::node_names(graph);
  return std::find(names.begin(), names.end(), node) < std::find(names.begin(), names.end(), by);
}

namespace {

// The addresses at which this node dials another one.
std::vector<net::Endpoint> addresses_of(const graph::Node& node, const net::KnownPeer* known) {
  std::vector<net::Endpoint> endpoints;
  if (!node.address.empty()) endpoints.push_back(net::parse_endpoint(node.address));
  if (known)
    for (const std::string& address : known->addresses) endpoints.push_back(net::parse_endpoint(address));
  return endpoints;
}

Error no_address(const graph::Node& node, const std::string& here, bool coordinates) {
  return {code::unreachable_node,
          here + " is to dial " + node.name + ", and has no address of it",
          node.place,
          {"the later of two nodes dials the earlier one, unless only the later one has an address in the pipeline"},
          "",
          coordinates ? "--coordinator ADDRESS" : "millrace nodes add " + node.name + " ID ADDRESS"};
}

} // namespace

std::vector<PeerPlan> peers_of(const graph::Graph& graph, const std::string& node, const std::filesystem::path& folder,
                               const std::vector<net::Endpoint>& coordinator) {
  net::KnownPeers known(folder / "peers.txt");
  known.load();
  const std::vector<std::string> names = graph::node_names(graph);
  std::vector<PeerPlan> peers;
  for (const std::string& name : names) {
    if (name == node) continue;
    const graph::Node& declared = find(graph, name);
    const bool coordinates = name == names[0];
    PeerPlan peer;
    peer.name = name;
    try {
      peer.id = id_of(declared, known, folder);
      peer.is_id_declared = !declared.id.empty();
      if (is_dialled_by(graph, name, node)) {
        const bool is_named = coordinates && !coordinator.empty();
        peer.endpoints = is_named ? coordinator : addresses_of(declared, known.find(peer.id));
        if (peer.endpoints.empty()) throw Failure(no_address(declared, node, coordinates));
      } else if (coordinates && !coordinator.empty()) {
        throw Failure(Error{code::bad_command_line,
                            "--coordinator is given, and " + name + " dials " + node,
                            declared.place,
                            {node + " has an address in the pipeline, and " + name + " has none"},
                            "",
                            "leave --coordinator out"});
      }
    } catch (const Failure& failure) {
      if (coordinates || node == names[0]) throw;
      peer.missing = failure.error();
    }
    peers.push_back(std::move(peer));
  }
  return peers;
}

} // namespace millrace::node
