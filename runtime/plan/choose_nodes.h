// Chooses the node that runs each handler which names none (nodes-design.md §3, decision 0062).
//
// Problem. A detector may run beside its camera, slowly, or on a server, far away. The better place depends on what a
// call takes on each device of each node, and on what a picture takes over each link.
//
// Why this way. The machines of all nodes, joined by links, are one machine with more devices: a link is a hop like
// any other. So nodes and devices are chosen in the one calculation that chooses devices (placement.h). Only the
// coordinator calculates; the others are told.
//
// Limits. A handler that acts on the world where it runs stays on the coordinator unless it names a node: a source, a
// sink, one that reads or writes files. So does one with a host object, which crosses no link; one in a loop, since
// no loop may go over a link; and one whose clock has no source. If the price of a handler is not known on all nodes
// that offer it, it runs beside its first input.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/machine.h"

namespace millrace::graph {
struct Graph;
}
namespace millrace::plugin {
struct HandlerInfo;
}

namespace millrace::plan {

class Types;
struct Facts;

// A node and its machine.
struct NodeMachine {
  std::string node;
  Machine machine;
};

// The machines of all nodes as one, the coordinator's first; its domains have full names: "edge/cpu". `links`: hops
// between hosts, with full names. A hop of the coordinator's machine file that has the same two names counts instead.
Machine join_machines(const std::vector<NodeMachine>& machines, const std::vector<Hop>& links);

// True if a handler of this type may be moved to another node than the coordinator though it names none.
bool may_move(const plugin::HandlerInfo& info);

struct ChosenNode {
  std::string handler;
  std::string node, domain; // "gpu", "cuda:0"
  std::string reason;
};

// By handler that names no node: the nodes that can run it, in the pipeline's order.
using OfferedNodes = std::map<std::string, std::vector<std::string>>;

struct ChosenNodes {
  std::vector<ChosenNode> handlers; // those that name no node and could run on another one than the coordinator
  std::vector<std::string> notes;   // the words of the calculation, for people
};

// `joined`: the machine of all nodes. Throws Failure, as compile() does, if the graph cannot be settled or no device
// can run a handler.
ChosenNodes choose_nodes(const graph::Graph& graph, const Facts& facts, const Types& types, const Machine& joined,
                         const Options& options, const OfferedNodes& offered);

} // namespace millrace::plan
