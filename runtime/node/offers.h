// The offers of a fleet: each node tells which handlers it can run, and on which machine; the coordinator takes all
// offers together, and decides which node runs each handler that names none.
//
//   offer   {"handlers": {…}, "unable": {…}, "machine": {…}}: the handlers that the node runs or might run, by name, as
//           told_handlers.h has them; why it cannot run others; its threads, devices and prices
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "embed/compose.h"
#include "node/told_handlers.h"
#include "plan/choose_nodes.h"

namespace millrace::node {

// Asks another node, and waits for its answer. Throws Failure if none comes.
using AskNodes = std::function<std::string(const std::string& node, const std::string& question)>;

// The offer of a node. Throws Failure if a source refuses.
std::string write_offer(embed::Preparation& preparation, const std::string& node);

// The machine of an offer, as read from its JSON. Throws Failure (MR0805).
plan::Machine read_machine(const std::string& json, const std::string& node);

// The offers of all nodes, on the coordinator.
class Offers {
 public:
  // Knows each other node's handlers from its offer, `others` by node, and asks that node what the compiler wants to
  // know of them; and listens to its own handlers. Throws Failure: MR0805 for an offer that cannot be read, MR0304 for
  // a handler that nobody told of, MR0812 for one that no node can run. `preparation` and `told` outlive this.
  Offers(const std::map<std::string, std::string>& others, AskNodes ask, embed::Preparation& preparation,
         ToldHandlers& told);

  // The machine of each node, JSON.
  std::map<std::string, std::string> machines() const;
  // True if some handler may run on several nodes.
  bool leave_choice() const;
  // Decides where the handlers run that name no node, and takes each from the offer of its node. `links`: between hosts
  // of nodes, with full names. Throws Failure as plan::choose_nodes() does.
  plan::ChosenNodes place(const std::vector<plan::Hop>& links, const plan::Options& options);

 private:
  void take(const std::string& node, plan::HandlerFacts& handler);
  std::vector<std::string> nodes_for(const graph::Handler& declared, const plan::HandlerFacts& handler) const;
  [[noreturn]] void refuse_everywhere(const graph::Handler& declared) const;

  const AskNodes ask_;
  embed::Preparation& preparation_;
  ToldHandlers& told_;
  const std::string coordinator_;
  std::map<std::string, nlohmann::json> others_; // by node
  plan::OfferedNodes offered_;
};

} // namespace millrace::node
