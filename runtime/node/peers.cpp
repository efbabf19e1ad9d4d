// Finds the other nodes of a pipeline; see peers.h.
#include "node/peers.h"

#include <algorithm>

#include "net/system/known_peers.h"
#include "observe/error.h"

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

std::vector<PeerPlan> peers_of(const graph::Graph& graph, const std::string& node, const std::filesystem::path& folder,
                               const std::vector<net::Endpoint>& coordinator) {
  net::KnownPeers known(folder / "peers.txt");
  known.load();
  const std::vector<std::string> names = graph::node_names(graph);
  std::vector<PeerPlan> peers;
  for (const std::string& name : names) {
    if (name == node) continue;
    const graph::Node& declared = find(graph, name);
    PeerPlan peer{name, id_of(declared, known, folder), {}};
    const bool is_named = name == names[0] && !coordinator.empty();
    if (is_dialled_by(graph, name, node)) {
      if (is_named) {
        peer.endpoints = coordinator;
      } else {
        if (!declared.address.empty()) peer.endpoints.push_back(net::parse_endpoint(declared.address));
        if (const net::KnownPeer* const more = known.find(peer.id))
          for (const std::string& address : more->addresses) peer.endpoints.push_back(net::parse_endpoint(address));
      }
      if (peer.endpoints.empty())
        throw Failure(
            Error{code::unreachable_node,
                  node + " is to dial " + name + ", and has no address of it",
                  declared.place,
                  {"the later of two nodes dials the earlier one, unless only the later one has an address in "
                   "the pipeline"},
                  "",
                  name == names[0] ? "--coordinator ADDRESS" : name + ": { address: … }"});
    } else if (is_named) {
      throw Failure(Error{code::bad_command_line,
                          "--coordinator is given, and " + name + " dials " + node,
                          declared.place,
                          {node + " has an address in the pipeline, and " + name + " has none"},
                          "",
                          "leave --coordinator out"});
    }
    peers.push_back(std::move(peer));
  }
  return peers;
}

} // namespace millrace::node
