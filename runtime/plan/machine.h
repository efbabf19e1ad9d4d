// The inputs of a plan besides its graph: the machine with its measurements, and the choices of a person.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/enums.h"
#include "plan/domain.h"
#include "plan/prices.h"

namespace millrace::plan {

struct Machine {
  uint32_t workers = 1;                              // threads to plan for
  uint32_t library_threads = 0;                      // others, which handlers' libraries start (share_threads.h)
  std::map<std::string, uint32_t> workers_elsewhere; // by node, the threads of other nodes; a missing one has as many
  std::vector<Domain> domains = {{}};                // its host and those of other nodes, then devices
  std::vector<uint32_t> order = {0}; // indices of `domains` for handlers that are not pinned, in order of preference
  std::vector<Hop> hops; // a missing one between a host and its device is guessed; one between hosts is a link
  std::vector<BodyCost> bodies;
  std::vector<LaunchCost> launches; // a missing one is guessed if bodies are enqueued there; else it costs nothing

  uint32_t workers_of(const Domain& host) const {
    const auto known = workers_elsewhere.find(host.node);
    return known == workers_elsewhere.end() ? workers : known->second;
  }

  // Sets `domains` and `order`. A host that is not among the `preferred` serves only handlers that can run nowhere
  // else.
  void use(const std::vector<Domain>& preferred) {
    domains = with_host(preferred);
    order.clear();
    for (const Domain& domain : preferred) order.push_back(*find_domain(domains, domain.name));
  }
};

struct Options {
  std::optional<graph::ClockMode> clock; // overrides the file
  std::optional<graph::Rational> rate;
  std::map<std::string, int64_t>
      costs_ns; // by handler, measured or declared: the cost where it runs; for placement, on this node's host
  std::map<std::string, std::string> places; // by handler: a domain, as in a plan that was saved
  std::string placed_by = "the saved plan";  // it gave these places
  std::vector<std::string> notes;            // the plan's notes begin with these
  bool by_price = true;                      // else handlers that are not pinned go to the first domain that runs them
  // The nodes that run the graph together, and which of them this plan is for. Every node compiles the whole graph, and
  // its plan has the steps of its own handlers alone. Empty: this machine runs everything.
  std::vector<std::string> nodes;
  uint32_t node = 0;
  // The longest time for which a parcel and its answer are under way between two nodes: crossings have places for the
  // ticks of that time.
  int64_t round_trip_ns = 0;
};

} // namespace millrace::plan
