// The other nodes of a pipeline: who dials, under which id, and at which address.
#include "node/peers.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "net/system/known_peers.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "tests/contains.h"
#include "tests/folder.h"

namespace millrace::node {
namespace {

namespace fs = std::filesystem;

net::NodeId id_with(uint8_t byte) {
  net::NodeId id;
  id.bytes.fill(static_cast<std::byte>(byte));
  return id;
}

// A node's folder with the peers that it knows, of the test's own.
class PeersFolder {
 public:
  void add(const std::string& name, uint8_t id, const std::vector<std::string>& addresses) const {
    net::KnownPeers(path() / "peers.txt").add({id_with(id), name, addresses});
  }
  const fs::path& path() const { return folder_.path; }

 private:
  const millrace::test::Folder folder_;
};

// The nodes in order, the first one is the coordinator; "" is no address.
graph::Graph graph_of(const std::vector<std::pair<std::string, std::string>>& nodes) {
  graph::Graph graph;
  for (const auto& [name, address] : nodes) {
    graph::Node node;
    node.name = name;
    node.address = address;
    node.place = {"p.yaml", static_cast<int>(graph.nodes.size() + 1), 3};
    graph.nodes.push_back(node);
  }
  return graph;
}

std::vector<std::string> addresses_of(const PeerPlan& peer) {
  std::vector<std::string> texts;
  for (const net::Endpoint& endpoint : peer.endpoints) texts.push_back(net::to_text(endpoint));
  return texts;
}

Error refusal_of_peers(const graph::Graph& graph, const std::string& node, const PeersFolder& folder,
                       const std::vector<net::Endpoint>& coordinator = {}) {
  try {
    peers_of(graph, node, folder.path(), coordinator);
  } catch (const Failure& failure) {
    return failure.error();
  }
  return {};
}

} // namespace

TEST_CASE("of two nodes the one dials that the other one cannot reach, else the later one, and both decide alike") {
  struct Case {
    const char *home, *gpu; // addresses
    bool gpu_dials_home;
  };
  for (const Case& one :
       {Case{"", "", true}, Case{"home:1", "", true}, Case{"", "gpu:1", false}, Case{"home:1", "gpu:1", true}}) {
    CAPTURE(one.home);
    CAPTURE(one.gpu);
    const graph::Graph graph = graph_of({{"home", one.home}, {"gpu", one.gpu}});
    CHECK(is_dialled_by(graph, "home", "gpu") == one.gpu_dials_home);
    CHECK(is_dialled_by(graph, "gpu", "home") == !one.gpu_dials_home);
  }
}

TEST_CASE("of any two of several nodes exactly one dials, and the coordinator is the first wherever its text stands") {
  graph::Graph graph = graph_of({{"a", ""}, {"b", "b:1"}, {"c", ""}, {"d", "d:1"}});
  graph.nodes[2].coordinator = true;
  const std::map<std::pair<std::string, std::string>, bool> dialled = {
      {{"c", "a"}, true},  {{"c", "b"}, false}, {{"c", "d"}, false},
      {{"a", "b"}, false}, {{"a", "d"}, false}, {{"b", "d"}, true},
  };
  for (const auto& [pair, is_dialled] : dialled) {
    CAPTURE(pair.first);
    CAPTURE(pair.second);
    CHECK(is_dialled_by(graph, pair.first, pair.second) == is_dialled);
    CHECK(is_dialled_by(graph, pair.second, pair.first) == !is_dialled);
  }
}

TEST_CASE("a node knows its peers from peers.txt, and dials the pipeline's address first, then those of the list") {
  const PeersFolder folder;
  folder.add("home", 1, {"10.0.0.1:7", "10.0.0.2"});
  folder.add("far", 3, {"10.0.0.3:7"});
  const graph::Graph graph = graph_of({{"home", "home.local:9"}, {"gpu", "gpu.local"}, {"far", ""}});
  const std::vector<PeerPlan> peers = peers_of(graph, "gpu", folder.path(), {});
  REQUIRE(peers.size() == 2);
  CHECK(peers[0].name == "home");
  CHECK(peers[0].id == id_with(1));
  CHECK(!peers[0].is_id_declared);
  CHECK(peers[0].dials());
  CHECK(addresses_of(peers[0]) == std::vector<std::string>{"home.local:9", "10.0.0.1:7", "10.0.0.2:7433"});
  CHECK(peers[1].name == "far");
  CHECK(peers[1].id == id_with(3));
  CHECK(!peers[1].dials()); // it has no address in the pipeline, so it dials
}

TEST_CASE("a node without an address in the pipeline is dialled at those of the list") {
  const PeersFolder folder;
  folder.add("home", 1, {"10.0.0.1:7"});
  const graph::Graph graph = graph_of({{"home", ""}, {"gpu", ""}});
  CHECK(addresses_of(peers_of(graph, "gpu", folder.path(), {}).at(0)) == std::vector<std::string>{"10.0.0.1:7"});
}

TEST_CASE("an id in the pipeline counts, and finds the addresses of the list under whatever name they are") {
  const PeersFolder folder;
  folder.add("home", 1, {"10.0.0.1:7"});
  folder.add("attic", 2, {"10.0.0.2:7"});
  graph::Graph graph = graph_of({{"home", ""}, {"gpu", ""}});
  graph.nodes[0].id = net::to_text(id_with(2));
  const PeerPlan peer = peers_of(graph, "gpu", folder.path(), {}).at(0);
  CHECK(peer.id == id_with(2));
  CHECK(addresses_of(peer) == std::vector<std::string>{"10.0.0.2:7"});
}

TEST_CASE("a node whose id is in the pipeline needs no list") {
  const PeersFolder folder;
  graph::Graph graph = graph_of({{"home", "home.local:9"}, {"gpu", ""}});
  graph.nodes[0].id = net::to_text(id_with(2));
  const PeerPlan peer = peers_of(graph, "gpu", folder.path(), {}).at(0);
  CHECK(peer.id == id_with(2));
  CHECK(peer.is_id_declared);
  CHECK(addresses_of(peer) == std::vector<std::string>{"home.local:9"});
}

TEST_CASE("addresses that are given for the coordinator are dialled instead of those that are known, and only there") {
  const PeersFolder folder;
  folder.add("home", 1, {"10.0.0.1:7"});
  folder.add("far", 3, {"10.0.0.3:7"});
  const graph::Graph graph = graph_of({{"home", "home.local:9"}, {"far", ""}, {"gpu", ""}});
  const std::vector<net::Endpoint> given = {net::parse_endpoint("1.2.3.4:5"), net::parse_endpoint("[::1]:6")};
  const std::vector<PeerPlan> peers = peers_of(graph, "gpu", folder.path(), given);
  REQUIRE(peers.size() == 2);
  CHECK(addresses_of(peers[0]) == std::vector<std::string>{"1.2.3.4:5", "[::1]:6"});
  CHECK(addresses_of(peers[1]) == std::vector<std::string>{"10.0.0.3:7"});
}

// Two members need no link if no ticks cross between them, so the mistake is kept until one does.
Error missing_of(const graph::Graph& graph, const std::string& node, const PeersFolder& folder, size_t peer) {
  const std::vector<PeerPlan> peers = peers_of(graph, node, folder.path(), {});
  return peers.at(peer).missing.value_or(Error{});
}

TEST_CASE(
    "MR0807: a node whose id is neither in the pipeline nor in the list is refused, with the command that adds it") {
  const PeersFolder folder;
  folder.add("home", 1, {"10.0.0.1:7"});
  const graph::Graph graph = graph_of({{"home", ""}, {"gpu", ""}, {"far", ""}});
  CHECK(refusal_of_peers(graph, "home", folder).what == "node gpu is not known here");
  const Error error = missing_of(graph, "gpu", folder, 1);
  CHECK(error.code == code::unknown_peer);
  CHECK(error.what == "node far is not known here");
  CHECK(error.place.line == 3);
  REQUIRE(error.notes.size() == 2);
  CHECK(contains(error.notes[1], (folder.path() / "peers.txt").string()));
}

TEST_CASE("MR0802: a node that is to dial another one and has no address of it is refused") {
  const PeersFolder folder;
  folder.add("home", 1, {});
  folder.add("far", 3, {});
  const graph::Graph graph = graph_of({{"home", ""}, {"gpu", ""}, {"far", ""}});
  const Error no_coordinator = refusal_of_peers(graph, "gpu", folder);
  CHECK(no_coordinator.code == code::unreachable_node);
  CHECK(no_coordinator.what == "gpu is to dial home, and has no address of it");
  CHECK(no_coordinator.place.line == 1);
  CHECK(refusal_of_peers(graph, "gpu", folder, {net::parse_endpoint("1.2.3.4:5")}).code == 0); // far dials
  const PeersFolder others;
  others.add("home", 1, {"10.0.0.1:7"});
  others.add("gpu", 2, {});
  const Error no_other = missing_of(graph, "far", others, 1);
  CHECK(no_other.code == code::unreachable_node);
  CHECK(no_other.what == "far is to dial gpu, and has no address of it");
}

TEST_CASE("MR0105: an id that is none, or --coordinator for one that dials this node, is refused") {
  const PeersFolder folder;
  folder.add("home", 1, {"10.0.0.1:7"});
  graph::Graph graph = graph_of({{"home", ""}, {"gpu", ""}});
  graph.nodes[0].id = "mr:MFRA";
  const Error no_id = refusal_of_peers(graph, "gpu", folder);
  CHECK(no_id.code == code::bad_command_line);
  CHECK(contains(no_id.what, "the id of node home"));
  CHECK(no_id.place.line == 1);
  const Error dials = refusal_of_peers(graph_of({{"home", ""}, {"gpu", "gpu.local"}}), "gpu", folder,
                                       {net::parse_endpoint("1.2.3.4:5")});
  CHECK(dials.code == code::bad_command_line);
  CHECK(dials.what == "--coordinator is given, and home dials gpu");
}

} // namespace millrace::node
