// What a plan is made for: a machine with what is known of it, and what a person chose.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "plan/domain.h"
#include "plan/hops.h"

namespace millrace::plan {

// What a call of a handler takes in a domain, as it was measured there.
struct BodyCost {
  std::string type, settings; // its parameters as declared, sorted: "radius=3 sigma=2"
  std::string domain;
  uint64_t bytes = 0; // that its inputs hold at most; of a source its outputs
  double mean_us = 0, p50_us = 0, p99_us = 0;
  uint64_t calls = 0; // that were measured
};

// What a device takes on each tick beside the time of its bodies and of the bytes that are copied.
struct LaunchCost {
  std::string domain;
  double region_us = 0; // of each region: its launch, its tick's numbers, its signal
  double copy_us = 0;   // of each copy: what waits for it and is waited for, and submitting it
};

struct Machine {
  uint32_t workers = 1;               // threads to plan for
  std::vector<Domain> domains = {{}}; // its host, then its devices
  std::vector<uint32_t> order = {0};  // of those: where handlers run that are not pinned, in order of preference
  std::vector<Hop> hops;              // between a host and its devices, a missing one is guessed
  std::vector<BodyCost> bodies;
  std::vector<LaunchCost> launches; // where bodies are enqueued, a missing one is guessed; elsewhere it is nothing

  // Sets `domains` and `order`. A host that is not among the `preferred` is there for what runs nowhere else.
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
      costs_ns; // by handler, measured or declared: where it runs, and for placing it, on the host
  std::map<std::string, std::string> places; // by handler: a domain, as in a plan that was saved
  bool by_price = true;                      // else handlers that are not pinned go to the first domain that runs them
};

} // namespace millrace::plan
