// Notes for handlers that do nothing: an input is not connected that its declaration says they are idle without.
#include <algorithm>

#include "plan/between.h"

namespace millrace::plan {

namespace {

using Port = plugin::HandlerInfo::Port;

// The input for which the handler is there, if neither it nor another such is connected.
const Port* missed_input(const DraftHandler& handler) {
  const Port* missed = nullptr;
  for (uint32_t p = 0; p < handler.info->ports.size(); ++p) {
    const Port& port = handler.info->ports[p];
    if (!(port.raw.flags & MR_PORT_IDLE_WITHOUT)) continue;
    if (handler.edge_counts[p] > 0) return nullptr;
    if (!missed) missed = &port;
  }
  return missed;
}

// An output of the graph that is meant for the input.
Origin giver_of(const Draft& draft, const Port& input) {
  for (uint32_t h = 0; h < draft.handlers.size(); ++h) {
    const DraftHandler& handler = draft.handlers[h];
    if (!handler.info || handler.declared->inserted) continue;
    for (uint32_t p = 0; p < handler.info->ports.size(); ++p)
      if (!handler.info->ports[p].is_input() && is_meant_for(handler.info->ports[p].raw.accepts, input.raw.accepts))
        return {h, p};
  }
  return {};
}

bool leads_to(const Draft& draft, uint32_t from, uint32_t to) {
  std::vector<bool> reached(draft.handlers.size());
  reached[from] = true;
  for (bool grows = true; grows;) {
    grows = false;
    for (const DraftEdge& edge : draft.edges) {
      if (!reached[edge.source] || reached[edge.target]) continue;
      reached[edge.target] = grows = true;
    }
  }
  return reached[to];
}

bool takes_anything(const Draft& draft, const graph::Edge& edge) {
  const plugin::HandlerInfo* info = draft.handlers[draft.handler_named.at(edge.target)].info;
  const Port* port = edge.target_port.empty() ? default_input(*info) : info->find_port(edge.target_port, MR_INPUT);
  return port && port->raw.accepts.kind == MR_KIND_ANY;
}

// The graph in which the giver reads what the idle handler reads, and the idle handler reads the giver too. Readers
// that take anything read what is drawn then.
graph::Graph with_giver_first(const Draft& draft, const std::string& idle, const std::string& giver,
                              const graph::Edge& missing) {
  graph::Graph graph = without_conversions(draft.graph);
  const auto feeds = std::find_if(graph.edges.begin(), graph.edges.end(),
                                  [&](const graph::Edge& edge) { return edge.target == idle; });
  if (feeds == graph.edges.end()) return graph;
  const graph::Edge feed = *feeds;
  for (graph::Edge& edge : graph.edges) {
    if (edge.source == idle && edge.target == giver) {
      edge.source = feed.source;
      edge.source_port = feed.source_port;
    } else if (edge.source == giver && takes_anything(draft, edge)) {
      edge.source = idle;
      edge.source_port = "";
    }
  }
  graph.edges.push_back(missing);
  return graph;
}

std::string edit_for(const Draft& draft, uint32_t idle, const Port& input, const Origin& giver) {
  const DraftHandler& handler = draft.handlers[idle];
  const graph::Edge missing = edge_between(draft, giver, handler.declared->name, *handler.info, input);
  const bool stands_after = leads_to(draft, idle, giver.handler);
  if (!handler.declared->place.is_one_line()) {
    const std::string entry = input.name + ": " + reference_to(draft, giver);
    return stands_after ? "" : "; try: " + entry + ", in its inputs:";
  }
  graph::Graph graph = draft.graph;
  if (stands_after)
    graph = with_giver_first(draft, handler.declared->name, draft.handlers[giver.handler].declared->name, missing);
  else
    graph.edges.push_back(missing);
  const std::string line = quoted_line(graph);
  return line.empty() ? "" : "; try: " + line;
}

} // namespace

void note_idle(Draft& draft) {
  for (uint32_t h = 0; h < draft.handlers.size(); ++h) {
    const DraftHandler& handler = draft.handlers[h];
    const Port* missed = handler.info ? missed_input(handler) : nullptr;
    if (!missed) continue;
    std::string note = handler.declared->name + " (" + handler.info->type + ") does nothing: its input " +
                       missed->name + " (" + missed->type_name + ") is not connected";
    if (const Origin giver = giver_of(draft, *missed); giver.handler != kNone) {
      const DraftHandler& from = draft.handlers[giver.handler];
      note += leads_to(draft, h, giver.handler) ? ", and " + from.declared->name + ", which gives that, stands after it"
                                                : ", and " + from.declared->name + " gives that";
      note += edit_for(draft, h, *missed, giver);
    }
    draft.plan.notes.push_back(note);
  }
}

} // namespace millrace::plan
