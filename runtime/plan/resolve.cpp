// Resolves names, the first pass: names become indices, lists of edges become flat inputs, and edges that cannot be
// wired are refused.
#include <algorithm>
#include <map>
#include <tuple>

#include "observe/error_codes.h"
#include "plan/between.h"
#include "plan/draft.h"
#include "plan/facts.h"
#include "plan/groups.h"
#include "plan/rewire.h"
#include "plugin/answers.h"

namespace millrace::plan {

namespace {

std::vector<std::string> port_names(const plugin::HandlerInfo& info, bool inputs) {
  std::vector<std::string> names;
  for (const auto& port : info.ports)
    if (port.is_input() == inputs) names.push_back(port.name);
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// `port`: the text after the dot. If a user wrote a handler's type in place of its name, "name.port" is that type, and
// the error says so.
uint32_t find_handler(const Draft& draft, const std::string& name, const std::string& port, const Place& place) {
  if (const auto known = draft.handler_named.find(name); known != draft.handler_named.end()) return known->second;
  std::vector<std::string> names;
  for (const graph::Handler& handler : draft.graph.handlers) names.push_back(handler.name);
  Error error{code::unknown_handler,
              "there is no handler named \"" + name + "\"",
              place,
              {"handlers: " + joined(names)},
              "",
              ""};
  for (const graph::Handler& handler : draft.graph.handlers) {
    if (port.empty() || handler.type != name + "." + port) continue;
    error.notes.push_back(handler.type + " is the type of " + handler.name + "; edges go by names");
    error.nearest = handler.name;
    break;
  }
  if (error.nearest.empty()) error.nearest = nearest_name(name, names);
  error.edit = error.nearest.empty() ? "the name of one of the handlers" : error.nearest;
  throw Failure(std::move(error));
}

// Refuses an edge that names no port if the handler has none on that side or several.
[[noreturn]] void refuse_unnamed(const Draft& draft, const DraftHandler& handler,
                                 const std::vector<uint32_t>& candidates, bool input, const Place& place) {
  const std::string side = input ? "input" : "output";
  Error error{code::ambiguous_port,
              handler.declared->name + " (" + handler.info->type + ") has " +
                  (candidates.empty() ? "no " + side : "several " + side + "s"),
              place,
              {},
              "",
              ""};
  if (!candidates.empty()) {
    error.notes.push_back(side + "s: " + joined(port_names(*handler.info, input)));
    error.edit = handler.declared->name + "." + handler.info->ports[candidates[0]].name;
    if (input && !place.is_one_line()) error.edit = "inputs: { " + handler.info->ports[candidates[0]].name + ": … }";
  } else if (input) {
    error.notes.push_back("it is a source: it makes its values itself");
    error.edit = place.is_one_line() ? "; before it, to begin a chain of its own" : "remove its input:";
  } else {
    error.notes.push_back("it is the end of its chain: values go in and none come out");
    for (const graph::Edge& edge : draft.graph.edges)
      if (edge.target == handler.declared->name && error.edit.empty())
        error.edit = edge.source + (place.is_one_line() ? ". in its place, which it reads" : ", which it reads");
    if (error.edit.empty()) error.edit = "another handler in its place";
  }
  throw Failure(std::move(error));
}

// The declared port of an edge's end; an empty name means the only one, or the only required one.
uint32_t find_port(const Draft& draft, const DraftHandler& handler, const std::string& name, bool input,
                   const Place& place) {
  const bool in_a_file = !place.is_one_line();
  const auto& ports = handler.info->ports;
  std::vector<uint32_t> candidates, required;
  for (uint32_t i = 0; i < ports.size(); ++i) {
    if (ports[i].is_input() != input) continue;
    if (ports[i].name == name) return i;
    candidates.push_back(i);
    if (!ports[i].optional()) required.push_back(i);
  }
  const char* side = input ? "input" : "output";
  const std::string names = joined(port_names(*handler.info, input));
  if (name.empty()) {
    if (candidates.size() == 1) return candidates[0];
    if (input && required.size() == 1) return required[0];
    refuse_unnamed(draft, handler, candidates, input, place);
  }
  const std::string nearest = nearest_name(name, port_names(*handler.info, input));
  const std::string port = nearest.empty() && !candidates.empty() ? ports[candidates[0]].name : nearest;
  throw Failure(
      Error{code::unknown_port,
            handler.declared->name + " (" + handler.info->type + ") has no " + side + " \"" + name + "\"",
            place,
            {std::string(side) + "s: " + names},
            nearest,
            port.empty() ? "remove it" : (in_a_file && input ? port + ": …" : handler.declared->name + "." + port)});
}

void add_handlers(Draft& draft) {
  for (uint32_t i = 0; i < draft.graph.handlers.size(); ++i) {
    const graph::Handler& declared = draft.graph.handlers[i];
    if (!draft.handler_named.emplace(declared.name, i).second)
      throw Failure(Error{code::duplicate_name,
                          "two handlers are named \"" + declared.name + "\"",
                          declared.place,
                          {},
                          "",
                          "rename one of them"});
    const HandlerFacts& prepared = draft.facts.handlers.at(i);
    DraftHandler handler;
    handler.declared = &declared;
    handler.takes_items = !declared.group.empty();
    handler.is_refused = declared.refused;
    if (!prepared.answers) { // its mistake was kept
      draft.handlers.push_back(std::move(handler));
      continue;
    }
    handler.answers = prepared.answers;
    handler.info = &handler.answers->info();
    handler.facts = prepared.facts;
    handler.accepts = prepared.accepts.data();
    handler.edge_counts.assign(handler.info->ports.size(), 0);
    draft.handlers.push_back(std::move(handler));
  }
}

// Both ends of an edge: ports, and the position among the edges of a list.
struct Ends {
  uint32_t output = 0, input = 0, position = 0;
};

// The source of the edge that an input has already.
std::string first_source(const Draft& draft, uint32_t target, const std::string& port) {
  for (const DraftEdge& edge : draft.edges)
    if (edge.target == target && (edge.declared->target_port.empty() || edge.declared->target_port == port))
      return edge.declared->source;
  return "elsewhere";
}

// Claims a place for the edge at its target port. Returns the port, and the position among the port's edges.
std::pair<uint32_t, uint32_t> take_input(const Draft& draft, DraftHandler& target, const DraftEdge& edge) {
  const graph::Edge& declared = *edge.declared;
  const uint32_t input = find_port(draft, target, declared.target_port, true, declared.place);
  const auto& port = target.info->ports[input];
  if (is_more_of_one(draft, edge, input)) return {input, 0};
  if (!declared.item_of.empty() && !target.declared->group.empty() && port.many())
    refuse_list_of_items(target, port.name, declared);
  if (!port.many() && target.edge_counts[input] == 1 && !declared.over.empty())
    refuse_list_at_one(target, port.name, declared);
  if (!port.many() && target.edge_counts[input] > 0) {
    const std::string edit = rewired(draft, target);
    throw Failure(Error{code::input_connected_twice,
                        "the input " + target.declared->name + "." + port.name + " is connected twice",
                        declared.place,
                        {"it takes one edge, and has one from " + first_source(draft, edge.target, port.name),
                         "inputs: " + joined(port_names(*target.info, true))},
                        "",
                        edit.empty() ? "remove one of them" : edit});
  }
  if (port.many() && target.edge_counts[input] >= port.raw.many_max)
    throw Failure(Error{code::input_connected_twice,
                        "the input " + target.declared->name + "." + port.name + " takes at most " +
                            std::to_string(port.raw.many_max) + " edges",
                        declared.place,
                        {"this is one more"},
                        "",
                        "leave it out"});
  return {input, target.edge_counts[input]++};
}

// Finds the ports of all edges, and the number of edges of each list.
void find_ends(Draft& draft, std::vector<Ends>& ends) {
  for (const graph::Edge& declared : draft.graph.edges) {
    DraftEdge edge;
    edge.declared = &declared;
    const bool is_sound = attempt(draft.kept, [&] {
      edge.target = find_handler(draft, declared.target, declared.target_port, declared.place);
      const Place& from = declared.source_place.line > 0 ? declared.source_place : declared.place;
      edge.source = find_handler(draft, declared.source, declared.source_port, from);
      DraftHandler& source = draft.handlers[edge.source];
      DraftHandler& target = draft.handlers[edge.target];
      Ends found;
      if (source.info) found.output = find_port(draft, source, declared.source_port, false, from);
      if (target.info) std::tie(found.input, found.position) = take_input(draft, target, edge);
      if (source.info) source.edge_counts[found.output] = 1;
      if (!source.info || !target.info) return;
      ends.push_back(found);
      draft.edges.push_back(edge);
    });
    if (is_sound) continue;
    if (const auto target = draft.handler_named.find(declared.target); target != draft.handler_named.end())
      draft.handlers[target->second].is_refused = true;
  }
}

// An edit that feeds an input: from a handler of this graph if one fits, else with one that could be written.
std::string source_for(const Draft& draft, const DraftHandler& reader, const plugin::HandlerInfo::Port& input) {
  const bool in_a_line = reader.declared->place.is_one_line();
  for (const DraftHandler& handler : draft.handlers)
    for (const auto& port : handler.info->ports) {
      if (&handler == &reader || port.is_input() || !kinds_agree(port.raw.accepts, input.raw.accepts)) continue;
      const bool reads_it = std::any_of(draft.edges.begin(), draft.edges.end(), [&](const DraftEdge& edge) {
        return edge.declared->source == reader.declared->name && edge.declared->target == handler.declared->name;
      });
      if (reads_it) continue;
      return in_a_line ? handler.declared->name + ". ! " + reader.declared->name + "." + input.name
                       : "inputs: { " + input.name + ": " + handler.declared->name + " }";
    }
  if (input.raw.accepts.kind != MR_KIND_IMAGE) return "a handler that gives " + input.type_name + " before it";
  return in_a_line ? "test.pattern ! " + reader.info->type : "video: { type: test.pattern }, and input: video";
}

void lay_flat(const Draft& draft, DraftHandler& handler) {
  handler.first.clear();
  for (uint32_t p = 0; p < handler.info->ports.size(); ++p) {
    const auto& port = handler.info->ports[p];
    uint32_t& count = port.is_input() ? handler.input_count : handler.output_count;
    handler.first.push_back(count);
    const uint32_t entries = port.many() ? handler.edge_counts[p] : 1;
    for (uint32_t i = 0; i < entries; ++i) (port.is_input() ? handler.input_port : handler.output_port).push_back(p);
    count += entries;
    if (!port.is_input() || port.optional() || handler.edge_counts[p] > 0 || handler.is_refused) continue;
    attempt(draft.kept, [&] {
      throw Failure(
          Error{code::input_not_connected,
                "the input " + handler.declared->name + "." + port.name + " (" + port.type_name + ") is not connected",
                handler.declared->place,
                {handler.info->type + " cannot run without it"},
                "",
                source_for(draft, handler, port)});
    });
  }
  handler.input_edge.assign(handler.input_count, kNone);
}

void refuse_kinds(const Draft& draft, const DraftEdge& edge, const plugin::HandlerInfo::Port& from,
                  const plugin::HandlerInfo::Port& to) {
  const DraftHandler& source = draft.handlers[edge.source];
  const DraftHandler& target = draft.handlers[edge.target];
  Error error{code::port_type_mismatch,
              with_article(from.type_name) + " cannot be read as " + to.type_name,
              edge.declared->place,
              {source.declared->name + "." + from.name + " (" + source.info->type + ") gives " + from.type_name,
               target.declared->name + "." + to.name + " (" + target.info->type + ") takes " + to.type_name},
              "",
              rewired(draft, target)};
  throw Failure(with_handler_between(std::move(error), draft, edge, from.raw.accepts, from.type_name, to));
}

void check_delay(const graph::Edge& declared, const plugin::HandlerInfo::Port& to) {
  if (declared.delay > 0 && !declared.initial_empty && !to.optional())
    throw Failure(
        Error{code::missing_initial_value,
              "an edge with delay: needs initial:",
              declared.place,
              {declared.delay == 1 ? "the first tick has no value to read"
                                   : "the first " + std::to_string(declared.delay) + " ticks have no value to read"},
              "",
              assignment(declared.place, "initial", "empty")});
  if (declared.delay > 0 && declared.policy != graph::Policy::sync)
    throw Failure(Error{code::conflicting_keys,
                        "delay: counts ticks, which only policy: sync reads",
                        declared.place,
                        {"the edge " + declared.source + " → " + declared.target + " has both"},
                        "",
                        declared.policy == graph::Policy::latest
                            ? "lag: " + std::to_string(declared.delay) + " in place of delay:"
                            : "remove delay:"});
  if (declared.initial_empty && declared.delay == 0 && declared.policy != graph::Policy::latest)
    throw Failure(Error{code::conflicting_keys,
                        "initial: stands in for an earlier value, which only delay: and policy: latest read",
                        declared.place,
                        {"the edge " + declared.source + " → " + declared.target + " reads none"},
                        "",
                        "remove initial:"});
}

void connect(Draft& draft, const std::vector<Ends>& ends) {
  for (uint32_t e = 0; e < draft.edges.size(); ++e) {
    DraftEdge& edge = draft.edges[e];
    DraftHandler& source = draft.handlers[edge.source];
    DraftHandler& target = draft.handlers[edge.target];
    edge.source_output = source.first[ends[e].output];
    edge.target_input = target.first[ends[e].input] + ends[e].position;
    uint32_t& first_edge = target.input_edge[edge.target_input];
    if (first_edge == kNone)
      first_edge = e;
    else if (target.takes_items)
      target.more_edges.push_back(e);
    edge.leaves = !edge.declared->item_of.empty() && source.takes_items;
    edge.enters = !edge.declared->item_of.empty() && target.takes_items;
    const auto& from = source.info->ports[ends[e].output];
    const auto& to = target.info->ports[ends[e].input];
    // Edges that were swapped are reported once.
    if (!kinds_agree(from.raw.accepts, to.raw.accepts) && !target.is_refused &&
        !attempt(draft.kept, [&] { refuse_kinds(draft, edge, from, to); }))
      target.is_refused = true;
    use_ports_policy(draft, edge, to.raw.flags);
    attempt(draft.kept, [&] { check_delay(*edge.declared, to); });
  }
}

void check_concurrency(const DraftHandler& handler) {
  if (handler.declared->concurrency <= 1) return;
  const char* why = !handler.info->stateless() ? "concurrency: needs a handler that is declared stateless"
                    : handler.is_source()      ? "a source is asked by its clock, one tick after another"
                                               : nullptr;
  if (why)
    throw Failure(Error{code::instances_with_state,
                        handler.declared->name + " (" + handler.info->type + ") cannot run as several instances",
                        handler.declared->place,
                        {why},
                        "",
                        "remove concurrency:"});
}

void refuse_cycles(Draft& draft) {
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const DraftEdge& edge : draft.edges)
    if (edge.declared->delay == 0) edges.emplace_back(edge.source, edge.target);
  draft.order = topological_order(static_cast<uint32_t>(draft.handlers.size()), edges);
  if (draft.order.size() == draft.handlers.size()) return;
  // Walk backwards from a handler that was not reached: its unreached sources lead round the cycle.
  std::vector<bool> reached(draft.handlers.size());
  for (uint32_t h : draft.order) reached[h] = true;
  uint32_t at = static_cast<uint32_t>(std::find(reached.begin(), reached.end(), false) - reached.begin());
  std::vector<uint32_t> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    for (const auto& [source, target] : edges)
      if (target == at && !reached[source]) {
        at = source;
        break;
      }
  }
  std::string text = draft.handlers[at].declared->name, last;
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    if (last.empty()) last = text;
    text += " → " + draft.handlers[*it].declared->name;
    if (*it == at) break;
    last = draft.handlers[*it].declared->name;
  }
  // The edge that closes it is the one to change.
  const std::string& first = draft.handlers[at].declared->name;
  const auto closing = std::find_if(draft.edges.begin(), draft.edges.end(), [&](const DraftEdge& edge) {
    return edge.declared->source == last && edge.declared->target == first && edge.declared->delay == 0;
  });
  const Place& place = closing == draft.edges.end() ? draft.handlers[at].declared->place : closing->declared->place;
  throw Failure(Error{code::cycle_without_delay,
                      "the graph has a cycle: " + text,
                      place,
                      {"each waits for the one before it; one edge has to read an earlier tick"},
                      "",
                      place.is_one_line() ? "delay=1 initial=empty after the reference"
                                          : "{ from: " + last + ", delay: 1, initial: empty }"});
}

} // namespace

std::string Draft::port_name(uint32_t handler, bool input, uint32_t flat) const {
  const DraftHandler& h = handlers[handler];
  const uint32_t port = input ? h.input_port[flat] : h.output_port[flat];
  std::string name = h.declared->name + "." + h.info->ports[port].name;
  if (h.info->ports[port].many()) name += "[" + std::to_string(flat - h.first[port]) + "]";
  return name;
}

void resolve(Draft& draft) {
  std::vector<Ends> ends;
  add_handlers(draft);
  find_ends(draft, ends);
  for (DraftHandler& handler : draft.handlers) {
    if (!handler.info) continue;
    lay_flat(draft, handler);
    attempt(draft.kept, [&] { check_concurrency(handler); });
  }
  connect(draft, ends);
  refuse_objects(draft);
  attempt(draft.kept, [&] { find_groups(draft); });
  attempt(draft.kept, [&] {
    refuse_cycles(draft);
    refuse_ways_back(draft);
  });
}

} // namespace millrace::plan
