// `millrace identity` and `nodes`: the id of this machine, and the nodes that it trusts.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/node_status.h"
#include "cli/output.h"
#include "compose/node_folder.h"
#include "embed/machine_file.h"
#include "net/system/endpoint.h"
#include "net/system/identity.h"
#include "net/system/known_peers.h"
#include "observe/error_codes.h"

namespace millrace::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

net::KnownPeers load_peers() {
  net::KnownPeers peers(compose::node_folder() / "peers.txt");
  peers.load();
  for (const std::string& complaint : peers.complaints()) std::fputs(("note: " + complaint + "\n").c_str(), stderr);
  return peers;
}

net::NodeId read_id(const std::string& text) {
  net::NodeId id;
  net::NodeIdFault fault;
  if (net::parse_node_id(text, id, fault)) return id;
  throw Failure(Error{code::bad_command_line,
                      "the id \"" + text + "\" " + net::describe(fault),
                      {},
                      {"an id is mr: and 54 letters, as `millrace identity` says it on the other machine"},
                      "",
                      ""});
}

[[noreturn]] void refuse_use(const std::string& what, const std::string& edit) {
  throw Failure(Error{code::bad_command_line, what, {}, {}, "", edit});
}

int add_node(const NodesCommand& command) {
  if (command.id.empty()) refuse_use("nodes add needs a name and an id", "millrace nodes add NAME ID ADDRESS");
  net::KnownPeer peer{read_id(command.id), command.name, {}};
  if (peer.id == net::Identity::open(compose::node_folder()).id())
    refuse_use("that is the id of this machine itself", "millrace nodes add NAME ID, with the id of the other machine");
  for (const std::string& address : command.addresses)
    peer.addresses.push_back(net::to_text(net::parse_endpoint(address)));
  net::KnownPeers peers = load_peers();
  const bool is_new = !peers.find(peer.id);
  peers.add(peer);
  write_file("-", fmt::format("{} {} ({})\n", is_new ? "added" : "changed", peer.name, net::short_text(peer.id)));
  return kDone;
}

int forget_node(const NodesCommand& command) {
  if (command.name.empty() || !command.id.empty())
    refuse_use("nodes forget needs one name or id", "millrace nodes forget NAME");
  net::KnownPeers peers = load_peers();
  const bool is_id = command.name.starts_with("mr:");
  const net::KnownPeer* const peer = is_id ? peers.find(read_id(command.name)) : peers.find(command.name);
  if (!peer) {
    std::vector<std::string> names;
    for (const net::KnownPeer& known : peers.peers()) names.push_back(known.name);
    throw Failure(Error{code::bad_command_line,
                        "no node \"" + command.name + "\" is known here",
                        {},
                        {"known: " + listed_from(command.name, names)},
                        nearest_name(command.name, names),
                        ""});
  }
  const std::string name = peer->name;
  peers.forget(net::NodeId(peer->id));
  write_file("-", "forgot " + name + "\n");
  return kDone;
}

int list_nodes(const NodesCommand& command) {
  const net::KnownPeers peers = load_peers();
  std::string text;
  const std::vector<ordered_json> running = running_nodes(compose::node_folder());
  ordered_json json = {{"version", 1}, {"nodes", ordered_json::array()}, {"running", running}};
  size_t width = 0;
  for (const net::KnownPeer& peer : peers.peers()) width = std::max(width, peer.name.size());
  for (const net::KnownPeer& peer : peers.peers()) {
    json["nodes"].push_back({{"name", peer.name}, {"id", net::to_text(peer.id)}, {"addresses", peer.addresses}});
    text += fmt::format("{:<{}}  {}  {}\n", peer.name, width, net::short_text(peer.id),
                        peer.addresses.empty() ? "no address" : fmt::format("{}", fmt::join(peer.addresses, " ")));
  }
  if (text.empty()) text = "no other node is known; `millrace nodes add NAME ID ADDRESS` adds one\n";
  for (const ordered_json& status : running) text += "\n" + status_words(status);
  write_file("-", command.json ? json.dump(2) + "\n" : text);
  return kDone;
}

// Goes on until a signal ends the process. A terminal shows the newest state alone; a file or a pipe gets all.
int watch_nodes(const NodesCommand& command) {
  if (!command.action.empty() || command.json)
    refuse_use("nodes --watch takes neither an action nor --json", "millrace nodes --watch");
  const std::string clear = isatty(STDOUT_FILENO) ? "\x1b[H\x1b[2J" : "";
  for (;;) {
    std::string text;
    for (const ordered_json& status : running_nodes(compose::node_folder()))
      text += (text.empty() ? "" : "\n") + status_words(status);
    if (text.empty()) text = "no node runs here\n";
    write_file("-", clear + text);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

} // namespace

int identity(const IdentityCommand& command) {
  const fs::path folder = compose::node_folder();
  const net::NodeId id = net::Identity::open(folder).id();
  const std::string key = (folder / "key.pem").string();
  const ordered_json json = {{"version", 1}, {"id", net::to_text(id)}, {"short", net::short_text(id)}, {"key", key}};
  write_file("-", command.json ? json.dump(2) + "\n" : net::to_text(id) + "\nkept in " + key + "\n");
  return kDone;
}

int nodes(const NodesCommand& command) {
  if (command.watch) return watch_nodes(command);
  if (command.action.empty()) return list_nodes(command);
  if (command.action == "add") return add_node(command);
  if (command.action == "forget") return forget_node(command);
  throw Failure(Error{code::bad_command_line,
                      "nodes has no action \"" + command.action + "\"",
                      {},
                      {"it lists without one, and has: add, forget"},
                      nearest_name(command.action, {"add", "forget"}),
                      "millrace nodes --help"});
}

} // namespace millrace::cli
