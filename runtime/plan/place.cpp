// Chooses the domain of each handler: by what it can do and the order in which devices were named; then by prices, if
// they are known (place_by_price.cpp).
#include <algorithm>

#include "millrace/nearest.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/draft.h"
#include "plan/machine.h"
#include "plan/pace.h"
#include "plan/stages.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// Returns "" if a source can run on a device, else why it cannot. There its clock counts for it, so that its pictures
// are functions of the tick.
std::string obstacle_to_source(const DraftHandler& handler, const Domain& domain) {
  if (domain.bodies != Bodies::enqueued || !handler.info->has_cuda())
    return "a source is called by its clock, on the cpu";
  if (!(handler.info->traits & MR_TRAIT_CAPTURABLE)) return "its GPU body has to be called on each tick";
  if (!handler.only_source) return "its clock has other sources, and ends with the last of them";
  if (handler.facts.live || handler.facts.rate_num > 0) return "a source with a rate of its own is called by its clock";
  return "";
}

// Returns "" if the handler can run there, else why it cannot.
std::string obstacle(const DraftHandler& handler, const Domain& domain) {
  if ((domain.is_host() ? handler.facts.cost_cpu_ns : handler.facts.cost_gpu_ns) < 0)
    return "with these parameters it does not run there";
  if (domain.is_host()) {
    for (const auto& port : handler.info->ports)
      if (port.raw.memory == MR_MEMORY_GPU) return "its port " + port.name + " is declared gpu";
    return handler.info->has_cpu() ? "" : "it has no CPU body";
  }
  if (handler.is_source())
    if (std::string why_not = obstacle_to_source(handler, domain); !why_not.empty()) return why_not;
  const bool enqueued = domain.bodies == Bodies::enqueued;
  if (enqueued && !handler.info->has_cuda()) return "it has no CUDA body";
  if (enqueued && handler.facts.no_gpu_body) return "with these parameters it has no CUDA body";
  if (!enqueued && !handler.info->has_cpu()) return "it has no CPU body for a simulated device to run";
  if (handler.info->traits & MR_TRAIT_BLOCKING) return "it blocks";
  if (!handler.info->thread.empty()) return "it needs the thread \"" + handler.info->thread + "\"";
  if (handler.info->max_pending > 0) return "its results may come later";
  for (const auto& port : handler.info->ports) {
    const bool writes_host = enqueued && !port.is_input(); // its kernels do, by the block's mapped address
    if (port.raw.memory == MR_MEMORY_CPU && !writes_host) return "its port " + port.name + " is declared cpu";
    const bool finishes = enqueued && (handler.info->traits & MR_TRAIT_FINISH);
    if (port.raw.memory == MR_MEMORY_CPU && finishes && handler.declared->on_error == graph::OnError::bypass)
      return "if its finish fails, its port " + port.name + ", declared cpu, cannot repeat what is on the device";
    if (port.raw.accepts.kind == MR_KIND_OBJECT) return "its port " + port.name + " carries a host object";
  }
  return "";
}

// Finds a domain by name, or refuses. `asks` begins the sentence of the error, `key` is the key that gave the name.
uint32_t asked_domain(const Draft& draft, const std::string& name, const std::string& asks, const char* key,
                      const Place& place) {
  const std::vector<Domain>& domains = draft.plan.domains;
  if (const auto found = find_domain(domains, name)) return *found;
  std::string known;
  std::vector<std::string> names;
  for (const Domain& domain : domains) {
    known += (known.empty() ? "" : ", ") + domain.name;
    names.push_back(domain.name);
  }
  const std::string gpu = gpu_meant(name);
  const bool is_gpu_here = !gpu.empty() && find_domain(domains, gpu).has_value();
  Error error{code::device_unavailable, asks + " " + name + ", which is not available", place,
              {"available: " + known},  gpu.empty() ? nearest_name(name, names) : gpu,  ""};
  const std::optional<DomainKind> kind = gpu.empty() ? kind_named(name) : DomainKind::cuda;
  if (is_gpu_here) {
    error.edit = assignment(place, key, gpu);
    throw Failure(std::move(error));
  }
  if (kind == DomainKind::cuda)
    error.notes.push_back("cuda devices come with the CUDA module; `millrace doctor` says what is here");
  const bool may_be_added = kind == DomainKind::sim && name.find(':') != std::string::npos;
  error.edit = may_be_added ? "--devices cpu," + name : assignment(place, key, domains[*host_on(domains, "")].name);
  throw Failure(std::move(error));
}

std::string at(const Place& place) {
  if (place.line == 0) return "";
  return ", at " + place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

std::string edge_words(const Draft& draft, const DraftEdge& edge) {
  return draft.port_name(edge.source, false, edge.source_output) + " → " +
         draft.port_name(edge.target, true, edge.target_input);
}

// An edge with `domain:` says where its reader has to run: a value is delivered where its reader is.
struct Demand {
  uint32_t domain = kNone;
  const DraftEdge* edge = nullptr; // null: nothing is demanded
};

// "video.video → blur.video requires sim:0, at street.yaml:4:12"
std::string side_words(const Draft& draft, const Demand& demand) {
  const graph::Edge& declared = *demand.edge->declared;
  return edge_words(draft, *demand.edge) + " requires " + declared.domain + at(declared.place);
}

Demand demand_on(const Draft& draft, const DraftHandler& handler) {
  Demand first;
  for (const uint32_t e : handler.input_edge) {
    if (e == kNone || draft.edges[e].declared->domain.empty()) continue;
    const graph::Edge& declared = *draft.edges[e].declared;
    const std::string asks = "the edge " + edge_words(draft, draft.edges[e]) + " requires";
    const Demand demand{asked_domain(draft, declared.domain, asks, "domain", declared.place), &draft.edges[e]};
    if (first.edge && first.domain != demand.domain)
      throw Failure(
          Error{code::device_unavailable,
                "the inputs of " + handler.declared->name + " are required in two domains, and it runs in one",
                declared.place,
                {side_words(draft, first), side_words(draft, demand)},
                "",
                assignment(declared.place, "domain", first.edge->declared->domain)});
    if (!first.edge) first = demand;
  }
  return first;
}

// Puts a handler where its `device:`, or the `domain:` of an input, says; false if neither is given.
bool pin(const Draft& draft, DraftHandler& handler) {
  const graph::Handler& declared = *handler.declared;
  const bool pinned = !declared.device.empty();
  const Demand demand = demand_on(draft, handler);
  if (!pinned && !demand.edge) return false;
  const Place& place = pinned ? declared.place : demand.edge->declared->place;
  handler.domain =
      pinned ? asked_domain(draft, declared.device, declared.name + " is pinned to", "device", place) : demand.domain;
  const Domain& domain = draft.plan.domains[handler.domain];
  if (demand.edge && demand.domain != handler.domain)
    throw Failure(
        Error{code::device_unavailable,
              declared.name + " is pinned to " + domain.name + ", and one of its inputs is required elsewhere",
              demand.edge->declared->place,
              {declared.name + " has device: " + domain.name + at(declared.place), side_words(draft, demand)},
              "",
              assignment(demand.edge->declared->place, "domain", domain.name)});
  if (const std::string why_not = obstacle(handler, domain); !why_not.empty()) {
    Error error{code::device_unavailable,
                declared.name + " (" + handler.info->type + ") cannot run on " + domain.name,
                place,
                {why_not},
                "",
                ""};
    if (!pinned) error.notes.push_back(side_words(draft, demand));
    error.edit = pinned ? "remove device:" : "remove domain:";
    throw Failure(std::move(error));
  }
  handler.reason = pinned ? "pinned by device:" : "pinned by domain: of " + edge_words(draft, *demand.edge);
  return true;
}

// Puts a handler where the saved plan has it; false if that does not name it.
bool place_as_saved(const Draft& draft, DraftHandler& handler) {
  const auto saved = draft.options.places.find(handler.declared->name);
  if (saved == draft.options.places.end()) return false;
  const graph::Handler& declared = *handler.declared;
  handler.domain = asked_domain(draft, saved->second, draft.options.placed_by + " has " + declared.name + " on",
                                "device", declared.place);
  if (const std::string why_not = obstacle(handler, draft.plan.domains[handler.domain]); !why_not.empty())
    throw Failure(
        Error{code::plan_mismatch,
              draft.options.placed_by + " has " + declared.name + " on " + saved->second + ", where it cannot run",
              declared.place,
              {why_not},
              "",
              "millrace plan --json, to save it anew"});
  handler.reason = "as " + draft.options.placed_by + " has it";
  return true;
}

// True for a sink that acts on the host because it was not written for a device: the body that a simulated device
// borrows is the host's.
bool stays_on_host(const DraftHandler& handler, const Domain& host) {
  return handler.output_count == 0 && !handler.info->has_cuda() && obstacle(handler, host).empty();
}

// The device of its node that a handler is pinned to; "": none.
std::string asked_device(const Draft& draft, const DraftHandler& handler) {
  if (!handler.declared->device.empty()) return handler.declared->device;
  for (const uint32_t e : handler.input_edge)
    if (e != kNone && !draft.edges[e].declared->domain.empty()) return draft.edges[e].declared->domain;
  return "";
}

// True if the handler may be put on the domain's node. In a graph that is spread over nodes each handler has its own. A
// source that is not pinned stays on this node: a camera elsewhere shows something else.
bool may_go_to(const Draft& draft, const DraftHandler& handler, const Domain& domain) {
  if (!draft.nodes_of.empty()) {
    const std::vector<std::string>& nodes = draft.nodes_of[static_cast<size_t>(&handler - draft.handlers.data())];
    const std::string asked = asked_device(draft, handler);
    return (asked.empty() || asked == own_name(domain)) &&
           (nodes.empty() || std::find(nodes.begin(), nodes.end(), domain.node) != nodes.end());
  }
  return domain.node.empty() || (draft.options.nodes.empty() && !handler.is_source());
}

// The domains that a handler which is not pinned may run in, in the order of --devices, and the reasons against the
// others.
struct Choices {
  std::vector<uint32_t> domains;
  std::vector<std::string> passed_over; // those before the first: "cuda:0: it has no CUDA body"
};

Choices choices_of(const Draft& draft, const DraftHandler& handler) {
  Choices choices;
  const std::vector<Domain>& domains = draft.plan.domains;
  for (const uint32_t d : draft.machine.order) {
    if (!may_go_to(draft, handler, domains[d])) continue;
    std::string why_not = obstacle(handler, domains[d]);
    if (why_not.empty() && !domains[d].is_host() && stays_on_host(handler, domains[host_of(domains, d)]))
      why_not = "a sink without a CUDA body";
    if (why_not.empty())
      choices.domains.push_back(d);
    else if (choices.domains.empty())
      choices.passed_over.push_back(domains[d].name + ": " + why_not);
  }
  return choices;
}

// The host of the handler's node. If the machine does not know that node, this one's: its values come by way of it.
uint32_t own_host(const Draft& draft, const DraftHandler& handler) {
  const std::vector<Domain>& domains = draft.plan.domains;
  const std::string node = is_here(draft, handler) ? "" : draft.options.nodes[handler.node];
  const std::optional<uint32_t> there = host_on(domains, node);
  return there ? *there : *host_on(domains, "");
}

// The hosts for a handler that no domain of `--devices` can run; its own one is the first.
std::vector<uint32_t> hosts_for(const Draft& draft, const DraftHandler& handler) {
  const std::vector<Domain>& domains = draft.plan.domains;
  const uint32_t own = own_host(draft, handler);
  std::vector<uint32_t> hosts;
  if (draft.nodes_of.empty() || may_go_to(draft, handler, domains[own])) hosts.push_back(own);
  for (uint32_t d = 0; d < domains.size(); ++d)
    if (domains[d].is_host() && d != own && may_go_to(draft, handler, domains[d])) hosts.push_back(d);
  return hosts;
}

// "first of --devices that can run it (cuda:0: it has no CUDA body)"
std::string first_words(const Choices& choices) {
  std::string list;
  for (const std::string& words : choices.passed_over) list += (list.empty() ? "" : "; ") + words;
  return "first of --devices that can run it" + (list.empty() ? "" : " (" + list + ")");
}

[[noreturn]] void refuse_everywhere(const Draft& draft, const DraftHandler& handler, const Choices& choices) {
  Error error{code::device_unavailable,
              "no device can run " + handler.declared->name + " (" + handler.info->type + ")",
              handler.declared->place,
              choices.passed_over,
              "",
              ""};
  const std::vector<Domain>& domains = draft.plan.domains;
  const bool has_gpu =
      std::any_of(domains.begin(), domains.end(), [](const Domain& domain) { return domain.kind == DomainKind::cuda; });
  if (handler.info->has_cuda() && !has_gpu) {
    error.notes.push_back("`millrace doctor` says which GPUs are here");
    error.edit = "--devices cuda:0,cpu";
  } else if (!handler.info->has_cuda() && !has_gpu) {
    error.notes.emplace_back("it has no GPU body either: process(Tick&, Cuda&)");
  }
  throw Failure(std::move(error));
}

// The domain of all that the handler reads; kNone if there are several, or if it reads nothing.
uint32_t domain_read(const Draft& draft, uint32_t h) {
  uint32_t domain = kNone;
  for (const DraftEdge& edge : draft.edges) {
    if (edge.target != h) continue;
    const DraftHandler& maker = draft.handlers[edge.source];
    const bool on_host = maker.info->ports[maker.output_port[edge.source_output]].raw.memory == MR_MEMORY_CPU;
    const uint32_t made = on_host ? host_of(draft.plan.domains, maker.domain) : maker.domain;
    if (domain != kNone && domain != made) return kNone;
    domain = made;
  }
  return domain;
}

// Sinks of unknown price run where their inputs are made: a copy for them alone would gain nothing.
void follow_inputs(Draft& draft, const std::vector<std::vector<uint32_t>>& choices) {
  for (uint32_t h = 0; h < draft.handlers.size(); ++h) {
    if (!follows_inputs(draft, h, choices[h])) continue;
    DraftHandler& handler = draft.handlers[h];
    const uint32_t domain = domain_read(draft, h);
    if (std::find(choices[h].begin(), choices[h].end(), domain) == choices[h].end()) continue;
    handler.domain = domain;
    handler.reason = "where what it reads is made";
  }
}

// For choose_nodes(): a handler that may run on several nodes, and whose price is not known on all of them, runs beside
// its first input.
void stay_beside_inputs(Draft& draft, const std::vector<std::vector<uint32_t>>& choices) {
  if (draft.nodes_of.empty()) return;
  for (const uint32_t h : draft.order) {
    DraftHandler& handler = draft.handlers[h];
    if (draft.nodes_of[h].size() < 2 || is_priced(draft, h, choices[h])) continue;
    const auto input =
        std::find_if(handler.input_edge.begin(), handler.input_edge.end(), [](uint32_t edge) { return edge != kNone; });
    if (input == handler.input_edge.end()) continue;
    const DraftHandler& maker = draft.handlers[draft.edges[*input].source];
    const std::string& node = draft.plan.domains[maker.domain].node;
    const auto beside = std::find_if(choices[h].begin(), choices[h].end(),
                                     [&](uint32_t d) { return draft.plan.domains[d].node == node; });
    if (beside != choices[h].end()) handler.domain = *beside;
    handler.reason = beside != choices[h].end() ? "beside " + maker.declared->name +
                                                      ", since its price is not known on all nodes that offer it"
                                                : "the first node that offers it, since its price is not known on all";
  }
}

} // namespace

bool follows_inputs(const Draft& draft, uint32_t h, const std::vector<uint32_t>& choices) {
  const DraftHandler& handler = draft.handlers[h];
  if (handler.output_count > 0 || handler.is_source() || choices.size() < 2) return false;
  return std::any_of(choices.begin(), choices.end(), [&](uint32_t d) {
    const Cost cost = cost_in(draft, handler, d);
    return !cost.sure || cost.us <= 0;
  });
}

void place(Draft& draft) {
  draft.plan.domains = draft.machine.domains;
  find_hops(draft);
  std::vector<size_t> sources(draft.plan.clocks.size()); // by clock
  for (const DraftHandler& handler : draft.handlers) sources[handler.clock] += handler.is_source();
  for (DraftHandler& handler : draft.handlers) handler.only_source = sources[handler.clock] == 1;
  std::vector<std::vector<uint32_t>> choices(draft.handlers.size());
  for (size_t h = 0; h < draft.handlers.size(); ++h) {
    DraftHandler& handler = draft.handlers[h];
    if (!is_here(draft, handler)) { // its own node places it
      handler.domain = own_host(draft, handler);
      choices[h] = {handler.domain};
      continue;
    }
    const bool chooses_nodes = !draft.nodes_of.empty(); // then a pin is one of the things that may_go_to() asks for
    if (!chooses_nodes && (place_as_saved(draft, handler) || pin(draft, handler))) {
      choices[h] = {handler.domain};
      continue;
    }
    const Choices found = choices_of(draft, handler);
    choices[h] = found.domains;
    if (!choices[h].empty()) {
      handler.domain = choices[h][0];
      if (!handler.declared->inserted) handler.reason = first_words(found);
      continue;
    }
    choices[h] = hosts_for(draft, handler);
    if (chooses_nodes && choices[h].empty() && draft.nodes_of[h].size() == 1)
      choices[h] = {*host_on(draft.plan.domains, draft.nodes_of[h][0])}; // its node says what it lacks
    else if (choices[h].empty() || !obstacle(handler, draft.plan.domains[choices[h][0]]).empty())
      refuse_everywhere(draft, handler, found);
    handler.domain = choices[h][0];
    handler.reason = "on the host";
  }
  stay_beside_inputs(draft, choices);
  place_by_price(draft, choices);
  stay_beside_inputs(draft, choices); // these may have moved
  follow_inputs(draft, choices);
  place_conversions(draft, choices);
}

} // namespace millrace::plan
