// Looks for another way to connect a handler's edges, in which every input gets what it takes.
#include "plan/rewire.h"
#include "plugin/handler_info.h"

#include <algorithm>

namespace millrace::plan {

bool kinds_agree(const mr_format& from, const mr_format& to) {
  if (from.kind == MR_KIND_ANY || to.kind == MR_KIND_ANY) return true;
  return from.kind == to.kind && (!from.schema || !to.schema || from.schema == to.schema) &&
         (!from.layout || !to.layout || from.layout == to.layout);
}

namespace {

bool is_plain(const graph::Edge& edge) {
  return edge.policy == graph::Policy::sync && edge.delay == 0 && !edge.initial_empty && !edge.forbid_copy &&
         !edge.forbid_convert && edge.domain.empty();
}

// Finds an input for each of `sources`, so that all kinds agree and no required input stays unconnected.
bool match(const DraftHandler& target, const std::vector<const plugin::HandlerInfo::Port*>& sources,
           std::vector<uint32_t>& inputs) {
  const auto& ports = target.info->ports;
  const auto is_taken = [&](uint32_t p) { return std::find(inputs.begin(), inputs.end(), p) != inputs.end(); };
  if (inputs.size() == sources.size()) {
    for (uint32_t p = 0; p < ports.size(); ++p)
      if (ports[p].is_input() && !ports[p].optional() && !is_taken(p)) return false;
    return true;
  }
  for (uint32_t p = 0; p < ports.size(); ++p) {
    const bool fits = ports[p].is_input() && !ports[p].many() && !is_taken(p) &&
                      kinds_agree(sources[inputs.size()]->raw.accepts, ports[p].raw.accepts);
    if (!fits) continue;
    inputs.push_back(p);
    if (match(target, sources, inputs)) return true;
    inputs.pop_back();
  }
  return false;
}

// More inputs than this are no slip of the pen; the limit bounds the search, which tries every order of them.
constexpr size_t kRewiredMax = 6;

} // namespace

std::string rewired(const Draft& draft, const DraftHandler& target) {
  std::vector<const plugin::HandlerInfo::Port*> sources;
  std::vector<std::string> references;
  for (const graph::Edge& edge : draft.graph.edges) {
    if (edge.target != target.declared->name) continue;
    const auto named = draft.handler_named.find(edge.source);
    const DraftHandler* source = named == draft.handler_named.end() ? nullptr : &draft.handlers[named->second];
    if (!source || !source->info || !is_plain(edge) || sources.size() == kRewiredMax) return "";
    const auto& ports = source->info->ports;
    const auto output = std::find_if(ports.begin(), ports.end(), [&](const auto& port) {
      return !port.is_input() && (edge.source_port.empty() || port.name == edge.source_port);
    });
    if (output == ports.end()) return "";
    sources.push_back(&*output);
    references.push_back(edge.source + (edge.source_port.empty() ? "" : "." + edge.source_port));
  }
  std::vector<uint32_t> inputs;
  if (sources.empty() || !match(target, sources, inputs)) return "";
  const bool in_a_line = target.declared->place.is_one_line();
  // A one-line pipeline can refer to ports only of handlers that name= has named; their place is that of the name.
  if (in_a_line && target.declared->place.column == target.declared->type_place.column) return "";
  std::string text;
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::string& port = target.info->ports[inputs[i]].name;
    const std::string from = references[i] + (references[i].find('.') == std::string::npos ? "." : "");
    text += (i == 0      ? ""
             : in_a_line ? " ; "
                         : ", ") +
            (in_a_line ? from + " ! " + target.declared->name + "." + port : port + ": " + references[i]);
  }
  return in_a_line ? text : "inputs: { " + text + " }";
}

} // namespace millrace::plan
