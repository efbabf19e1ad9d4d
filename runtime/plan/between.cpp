// Looks among all types for the handler that belongs between two others; see between.h.
#include "plan/between.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "graph/to_line.h"
#include "plan/facts.h"
#include "plan/rewire.h"

namespace millrace::plan {

namespace {

using Info = plugin::HandlerInfo;
using Port = plugin::HandlerInfo::Port;

bool has_one_output(const Info& info) {
  return std::count_if(info.ports.begin(), info.ports.end(), [](const Port& port) { return !port.is_input(); }) == 1;
}

std::string name_in_text(const graph::Handler& handler) {
  return handler.written_as.empty() ? handler.name : handler.written_as;
}

// A handler type that could stand between, and where its inputs would come from.
struct Candidate {
  const Info* info = nullptr;
  const Port *in = nullptr, *out = nullptr;
  std::vector<std::pair<const Port*, Origin>> others; // its other required inputs

  // The best first. An optional input is often for something beside the point, unless the handler is idle without it,
  // and a second output makes a handler one for a special purpose.
  auto rank() const {
    const bool is_purpose = !in->optional() || (in->raw.flags & MR_PORT_IDLE_WITHOUT);
    const bool is_of_tests = info->type.starts_with("test.");
    return std::tuple(!is_purpose, is_of_tests, others.size(), !has_one_output(*info), info->plugin != "millrace",
                      info->type);
  }
};

bool has_required_parameter(const Info& info) {
  return std::any_of(info.params.begin(), info.params.end(), [](const auto& param) { return param.required(); });
}

// The type with its inputs, if it takes what the edge's source gives and gives what the target takes.
std::optional<Candidate> candidate(const Draft& draft, uint32_t source, const Info& info, const mr_format& gives,
                                   const mr_format& takes) {
  Candidate found{&info, nullptr, nullptr, {}};
  for (const Port& port : info.ports) {
    if (port.is_input() && !found.in && is_meant_for(gives, port.raw.accepts)) found.in = &port;
    if (!port.is_input() && !found.out && is_meant_for(port.raw.accepts, takes)) found.out = &port;
  }
  if (!found.in || !found.out || has_required_parameter(info)) return {};
  for (const Port& port : info.ports) {
    if (!port.is_input() || port.optional() || &port == found.in) continue;
    const Origin origin = nearest_origin(draft, source, port.raw.accepts);
    if (origin.handler == kNone) return {};
    found.others.emplace_back(&port, origin);
  }
  return found;
}

// "boxes", or "boxes2" if the graph has a handler of that name.
std::string free_name(const graph::Graph& graph, const std::string& type) {
  const std::string stem = type.substr(type.rfind('.') + 1);
  std::string name = stem;
  const auto is_taken = [&](const graph::Handler& handler) { return name_in_text(handler) == name; };
  for (int n = 2; std::any_of(graph.handlers.begin(), graph.handlers.end(), is_taken); ++n)
    name = stem + std::to_string(n);
  return name;
}

std::string as_line(const Draft& draft, const DraftEdge& edge, const Candidate& candidate, const std::string& name) {
  graph::Graph graph = draft.graph;
  graph::Handler between;
  between.name = name;
  between.type = candidate.info->type;
  graph.handlers.push_back(between);
  graph::Edge& second = graph.edges[static_cast<size_t>(edge.declared - draft.graph.edges.data())];
  graph::Edge first;
  first.source = second.source;
  first.source_port = second.source_port;
  first.target = name;
  if (candidate.in != default_input(*candidate.info)) first.target_port = candidate.in->name;
  second.source = name;
  second.source_port = has_one_output(*candidate.info) ? "" : candidate.out->name;
  graph.edges.push_back(first);
  for (const auto& [port, origin] : candidate.others)
    graph.edges.push_back(edge_between(draft, origin, name, *candidate.info, *port));
  return quoted_line(graph);
}

std::string in_file(const Draft& draft, const DraftEdge& edge, const Candidate& candidate, const std::string& name) {
  const graph::Handler& source = *draft.handlers[edge.source].declared;
  const std::string reference =
      name_in_text(source) + (edge.declared->source_port.empty() ? "" : "." + edge.declared->source_port);
  std::string inputs = "inputs: { " + candidate.in->name + ": " + reference;
  for (const auto& [port, origin] : candidate.others) inputs += ", " + port->name + ": " + reference_to(draft, origin);
  inputs += " }";
  if (candidate.others.empty() && candidate.in == default_input(*candidate.info)) inputs = "input: " + reference;
  const std::string each = source.for_each.empty() ? "" : ", for_each: " + source.for_each;
  const std::string port = has_one_output(*candidate.info) ? "" : "." + candidate.out->name;
  return name + ": { type: " + candidate.info->type + each + ", " + inputs + " }, and " + name + port +
         " in the place of " + reference;
}

} // namespace

const Port* default_input(const Info& info) {
  std::vector<const Port*> all, required;
  for (const Port& port : info.ports) {
    if (!port.is_input()) continue;
    all.push_back(&port);
    if (!port.optional()) required.push_back(&port);
  }
  if (all.size() == 1) return all[0];
  return required.size() == 1 ? required[0] : nullptr;
}

bool is_meant_for(const mr_format& from, const mr_format& to) {
  if (from.kind == MR_KIND_ANY || to.kind == MR_KIND_ANY || !kinds_agree(from, to)) return false;
  if (from.kind == MR_KIND_RECORDS && (!from.schema || !to.schema)) return false;
  const auto meet = [](uint32_t a, uint32_t b) { return !a || !b || (a & b); };
  return meet(from.dtypes, to.dtypes) && meet(from.ranks, to.ranks);
}

Origin nearest_origin(const Draft& draft, uint32_t handler, const mr_format& takes) {
  std::vector<uint32_t> queue{handler};
  std::set<uint32_t> seen{handler};
  for (size_t at = 0; at < queue.size(); ++at) {
    const DraftHandler& here = draft.handlers[queue[at]];
    if (!here.info) continue;
    for (uint32_t p = 0; p < here.info->ports.size() && !here.declared->inserted; ++p)
      if (!here.info->ports[p].is_input() && is_meant_for(here.info->ports[p].raw.accepts, takes))
        return {queue[at], p};
    for (const graph::Edge& edge : draft.graph.edges) {
      if (edge.target != here.declared->name) continue;
      const auto source = draft.handler_named.find(edge.source);
      if (source != draft.handler_named.end() && seen.insert(source->second).second) queue.push_back(source->second);
    }
  }
  return {};
}

std::string reference_to(const Draft& draft, const Origin& origin) {
  const DraftHandler& handler = draft.handlers[origin.handler];
  const std::string name = name_in_text(*handler.declared);
  return has_one_output(*handler.info) ? name : name + "." + handler.info->ports[origin.port].name;
}

graph::Edge edge_between(const Draft& draft, const Origin& origin, const std::string& target,
                         const plugin::HandlerInfo& info, const plugin::HandlerInfo::Port& input) {
  const DraftHandler& from = draft.handlers[origin.handler];
  graph::Edge edge;
  edge.source = from.declared->name;
  if (!has_one_output(*from.info)) edge.source_port = from.info->ports[origin.port].name;
  edge.target = target;
  if (&input != default_input(info)) edge.target_port = input.name;
  return edge;
}

graph::Graph without_conversions(const graph::Graph& graph) {
  graph::Graph written = graph;
  for (const graph::Handler& handler : graph.handlers) {
    if (!handler.inserted) continue;
    const auto in = std::find_if(written.edges.begin(), written.edges.end(),
                                 [&](const graph::Edge& edge) { return edge.target == handler.name; });
    if (in == written.edges.end()) continue;
    for (graph::Edge& edge : written.edges) {
      if (edge.source != handler.name) continue;
      edge.source = in->source;
      edge.source_port = in->source_port;
    }
    written.edges.erase(in);
  }
  std::erase_if(written.handlers, [](const graph::Handler& handler) { return handler.inserted; });
  return written;
}

std::string quoted_line(const graph::Graph& graph) {
  const std::string line = graph::to_line(without_conversions(graph));
  if (line.empty()) return "";
  std::string quoted = "'";
  for (const char c : line)
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + "'";
}

Error with_handler_between(Error error, const Draft& draft, const DraftEdge& edge, const mr_format& gives,
                           const std::string& gives_name, const plugin::HandlerInfo::Port& to) {
  if (!error.edit.empty()) return error;
  std::optional<Candidate> best;
  for (const Info* info : draft.types.all()) {
    std::optional<Candidate> found = candidate(draft, edge.source, *info, gives, to.raw.accepts);
    if (found && (!best || found->rank() < best->rank())) best = std::move(found);
  }
  if (!best) {
    error.notes.push_back("no handler that is known here turns " + gives_name + " into what " +
                          draft.handlers[edge.target].declared->name + "." + to.name +
                          " takes; `millrace new` writes one");
    return error;
  }
  std::string note = best->info->type + " takes " + gives_name;
  for (const auto& [port, origin] : best->others) note += " and " + port->type_name;
  error.notes.push_back(note + ", and gives " + best->out->type_name);
  const std::string name = free_name(draft.graph, best->info->type);
  error.edit =
      edge.declared->place.is_one_line() ? as_line(draft, edge, *best, name) : in_file(draft, edge, *best, name);
  return error;
}

} // namespace millrace::plan
