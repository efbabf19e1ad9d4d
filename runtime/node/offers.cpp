// Writes and reads offers, and joins the machines of all nodes; see offers.h.
#include "node/offers.h"

#include <algorithm>

#include "node/documents.h"
#include "node/reading.h"
#include "plugin/registry.h"

namespace millrace::node {

namespace {

using nlohmann::json;

constexpr size_t kDevicesMax = 64;
constexpr uint32_t kWorkersMax = 4096;

// The prices of a machine, of the handler types in this graph alone.
json write_machine(const embed::Preparation& preparation) {
  const plan::Machine& machine = preparation.machine();
  embed::MachineFile prices;
  prices.hops = machine.hops;
  prices.launches = machine.launches;
  const std::vector<graph::Handler>& handlers = preparation.graph().handlers;
  std::copy_if(machine.bodies.begin(), machine.bodies.end(), std::back_inserter(prices.bodies),
               [&](const plan::BodyCost& body) {
                 return std::any_of(handlers.begin(), handlers.end(),
                                    [&](const graph::Handler& handler) { return handler.type == body.type; });
               });
  json written = {{"workers", machine.workers}, {"devices", json::array()}, {"prices", {}}};
  for (const uint32_t domain : machine.order) written["devices"].push_back(machine.domains[domain].name);
  written["prices"] = json::parse(embed::print_machine(prices));
  return written;
}

plan::Machine machine_in(const json& written) {
  plan::Machine machine;
  machine.workers = std::clamp(written.at("workers").get<uint32_t>(), 1u, kWorkersMax);
  std::vector<plan::Domain> domains;
  for (const json& name : written.at("devices").get_ref<const json::array_t&>()) {
    const std::optional<plan::Domain> domain = plan::parse_domain(name.get<std::string>());
    if (!domain || !domain->node.empty() || domains.size() == kDevicesMax)
      throw Failure(code::other_version, "it has a device that is not known here");
    domains.push_back(*domain);
  }
  machine.use(domains);
  const embed::MachineFile prices = embed::parse_machine(written.at("prices").dump());
  machine.hops = prices.hops;
  machine.bodies = prices.bodies;
  machine.launches = prices.launches;
  return machine;
}

std::string offer_of(const std::string& node) { return "the offer of " + node; }

} // namespace

plan::Machine read_machine(const std::string& text, const std::string& node) {
  return reading("the machine of " + node, [&] { return machine_in(read_json(text)); });
}

std::string write_offer(embed::Preparation& preparation, const std::string& node) {
  json offer = {
      {"handlers", json::object()}, {"unable", preparation.unable()}, {"machine", write_machine(preparation)}};
  for (size_t h = 0; h < preparation.facts().handlers.size(); ++h) {
    const graph::Handler& declared = preparation.graph().handlers[h];
    plan::HandlerFacts handler = preparation.facts().handlers[h];
    const bool may_run_here = declared.node.empty() && handler.answers && plan::may_move(handler.answers->info());
    if (graph::node_of(preparation.graph(), declared) != node && !may_run_here) continue;
    if (!handler.answers) continue; // unable
    if (handler.answers->info().is_source() && handler.outputs.empty())
      handler.outputs = plan::formats_of_source(declared, handler);
    offer["handlers"][declared.name] = ToldHandlers::tell(handler);
  }
  return text_of(offer, "the offer of this node");
}

Offers::Offers(const std::map<std::string, std::string>& others, AskNodes ask, embed::Preparation& preparation,
               ToldHandlers& told)
    : ask_(std::move(ask)),
      preparation_(preparation),
      told_(told),
      coordinator_(graph::node_names(preparation.graph()).at(0)) {
  for (const auto& [node, offer] : others) others_[node] = parse_body(offer, offer_of(node));
  for (size_t h = 0; h < preparation_.facts().handlers.size(); ++h) {
    const graph::Handler& declared = preparation_.graph().handlers[h];
    plan::HandlerFacts& handler = preparation_.facts().handlers[h];
    const std::vector<std::string> nodes = nodes_for(declared, handler);
    if (nodes.empty()) refuse_everywhere(declared);
    if (declared.node.empty()) offered_[declared.name] = nodes;
    take(nodes[0], handler);
  }
}

std::vector<std::string> Offers::nodes_for(const graph::Handler& declared, const plan::HandlerFacts& handler) const {
  std::vector<std::string> nodes;
  for (const std::string& node : graph::node_names(preparation_.graph())) {
    if (!declared.node.empty() && declared.node != node) continue;
    const auto other = others_.find(node);
    if (other == others_.end() ? handler.answers != nullptr : other->second["handlers"].contains(declared.name))
      nodes.push_back(node);
  }
  return nodes;
}

void Offers::take(const std::string& node, plan::HandlerFacts& handler) {
  const auto from = others_.find(node);
  if (from == others_.end()) return told_.listen(handler);
  told_.take(from->second["handlers"][handler.name], handler,
             [ask = ask_, node](const std::string& question) { return ask(node, question); });
}

void Offers::refuse_everywhere(const graph::Handler& declared) const {
  if (!declared.node.empty() && others_.contains(declared.node))
    throw Failure(code::other_version, declared.node + " does not offer its handler " + declared.name);
  Error error = plugin::unknown_type(preparation_.registry(), code::unknown_type, declared.type);
  error.what = "no node can run " + declared.name + " (" + declared.type + ")";
  error.place = declared.type_place;
  error.edit = error.nearest.empty() ? "" : "type: " + error.nearest;
  const auto add = [&](const std::string& node, const std::map<std::string, std::string>& unable) {
    const auto why = unable.find(declared.name);
    if (why != unable.end()) error.code = code::unable_node;
    error.notes.push_back(node + ": " + (why == unable.end() ? "its type is not known there" : why->second));
  };
  add(coordinator_, preparation_.unable());
  for (const auto& [node, offer] : others_)
    add(node, reading(offer_of(node),
                      [&offer = offer] { return offer.value("unable", std::map<std::string, std::string>{}); }));
  throw Failure(std::move(error));
}

std::map<std::string, std::string> Offers::machines() const {
  std::map<std::string, std::string> machines = {{coordinator_, write_machine(preparation_).dump()}};
  for (const auto& [node, offer] : others_)
    machines[node] = reading(offer_of(node), [&offer = offer] { return offer.at("machine").dump(); });
  return machines;
}

bool Offers::leave_choice() const {
  return std::any_of(offered_.begin(), offered_.end(), [](const auto& offered) { return offered.second.size() > 1; });
}

plan::ChosenNodes Offers::place(const std::vector<plan::Hop>& links, const plan::Options& options) {
  const bool all_stay = std::all_of(offered_.begin(), offered_.end(), [&](const auto& offered) {
    return offered.second == std::vector<std::string>{coordinator_};
  });
  if (all_stay) return {};
  std::vector<plan::NodeMachine> machines = {{coordinator_, preparation_.machine()}};
  for (const std::string& node : graph::node_names(preparation_.graph()))
    if (const auto other = others_.find(node); other != others_.end())
      machines.push_back({node, reading(offer_of(node), [&] { return machine_in(other->second.at("machine")); })});
  plan::ChosenNodes chosen = preparation_.choose_nodes(plan::join_machines(machines, links), options, offered_);
  for (const plan::ChosenNode& one : chosen.handlers) {
    preparation_.run_on(one.handler, one.node);
    if (one.node == offered_.at(one.handler)[0]) continue;
    for (plan::HandlerFacts& handler : preparation_.facts().handlers)
      if (handler.name == one.handler) take(one.node, handler);
  }
  return chosen;
}

} // namespace millrace::node
