// A domain: memory in one place, and the kind of bodies that work on it. parse_domain() and the code that knows the
// device make its record once; the plan and the run ask the record, never a domain's name or number.
//
// A node is a machine that takes part in a plan. Each has one host, and the devices of a node are reached through it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::plan {

enum class DomainKind { cpu, sim, cuda };

// How a handler's body runs on the memory of a domain.
enum class Bodies {
  on_host,   // a thread of the host calls it
  simulated, // a simulated device calls the host's body when the command's turn comes
  enqueued,  // the host calls the GPU's body when its tick is submitted; the device runs what that enqueues
};

struct Domain {
  std::string name = "cpu"; // as people write it; on another node "edge/cuda:0"
  std::string node;         // "": this one
  DomainKind kind = DomainKind::cpu;
  uint32_t index = 0; // among the domains of its kind on its node
  Bodies bodies = Bodies::on_host;
  bool host_memory = true;      // threads of the host may touch it; what a device touches or copies there is pinned
  bool records_on_host = false; // the host has its own copy of each value's header (decision 0015)
  bool pushes = false;          // it submits copies to domains that push too; else the target does (decision 0011)
  uint64_t bytes_limit = 0;     // limit for all that a plan lays out there; 0: no limit

  bool is_host() const { return bodies == Bodies::on_host; }
};

// Parses "cpu", "sim:0", "cuda:1", "edge/cuda:0" into a record with the properties of the kind and no limit. Nothing if
// the name is not valid.
std::optional<Domain> parse_domain(std::string_view name);

// The name on its own node: "cuda:0" of "edge/cuda:0".
std::string own_name(const Domain& domain);

// The kind that a name begins with, even if the rest is wrong: "cuda:first".
std::optional<DomainKind> kind_named(std::string_view name);

// Records for names that parse_domain() reads.
std::vector<Domain> domains_named(const std::vector<std::string>& names);

// The same domains with hosts first; adds this node's host, and that of each other node, if it is not there. A plan has
// its domains in this order.
std::vector<Domain> with_host(const std::vector<Domain>& domains);

std::optional<uint32_t> find_domain(const std::vector<Domain>& domains, std::string_view name);

// The host of a node; "" is this one. Nothing if it has none here.
std::optional<uint32_t> host_on(const std::vector<Domain>& domains, std::string_view node);

// The host through which a domain is reached; a host's is itself. Every node of a plan has one.
uint32_t host_of(const std::vector<Domain>& domains, uint32_t domain);

// The end of a hop that submits its copies: the device, if the other end is a host. Between two devices, the one that
// is written to submits, unless both push. Between two hosts, the one that is read sends.
uint32_t submitter_of(const std::vector<Domain>& domains, uint32_t from, uint32_t to);

} // namespace millrace::plan
