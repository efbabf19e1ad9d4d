// From a declared graph to a plan: makes the handlers, runs the passes in order, and begins again where negotiation
// asks for a conversion.
#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_map>

#include "graph/file_kind.h"
#include "millrace/payload.h"
#include "plan/clock_circles.h"
#include "plan/draft.h"
#include "plan/order.h"
#include "plan/paths.h"
#include "plan/predict.h"
#include "plan/refusal.h"

namespace millrace::plan {

namespace {

// One round finds all conversions, another that there are no more. A handler that makes something else of its input
// than its ports say may cost a round; more than these means that two ask for each other's formats for ever.
constexpr int kConversionRoundsMax = 64;

const plugin::HandlerInfo& find_type(const graph::Graph& graph, const plugin::Registry& registry,
                                     const graph::Handler& declared) {
  if (const plugin::HandlerInfo* info = registry.find(declared.type)) return *info;
  Error error = plugin::unknown_type(registry, 304, declared.type);
  error.place = declared.type_place;
  const bool in_a_line = declared.type_place.file == "pipeline";
  if (!error.nearest.empty()) error.edit = in_a_line ? error.nearest : "type: " + error.nearest;
  if (in_a_line && graph::file_kind(declared.type) != graph::FileKind::other) {
    const bool writes = std::any_of(graph.edges.begin(), graph.edges.end(),
                                    [&](const graph::Edge& edge) { return edge.target == declared.name; });
    error.notes = {"it looks like the name of a file, which a handler " + std::string(writes ? "writes" : "reads")};
    error.nearest.clear();
    error.edit = writes ? graph::sink_of(declared.type) : graph::source_of(declared.type);
  }
  throw Failure(std::move(error));
}

// A key of an edge that stands among the parameters of the handler that the edge leads to.
[[noreturn]] void refuse_edge_key(const graph::Graph& graph, const graph::Handler& declared,
                                  const graph::Param& param) {
  const auto edge = std::find_if(graph.edges.begin(), graph.edges.end(),
                                 [&](const graph::Edge& e) { return e.target == declared.name; });
  const std::string from = edge == graph.edges.end() ? "…" : edge->source;
  const bool in_a_line = param.name_place.file == "pipeline";
  const std::string given = param.name + (in_a_line ? "=" : ": ") + param.text;
  const std::string port = edge == graph.edges.end() || edge->source_port.empty() ? "" : edge->source_port;
  throw Failure(Error{310,
                      declared.name + " (" + declared.type + ") has no parameter \"" + param.name + "\"",
                      param.name_place,
                      {"'" + param.name + "' is a key of an edge, and stands " +
                       (in_a_line ? "after the reference that the edge leads to" : "in the input, beside from:")},
                      "",
                      in_a_line ? "`;` in place of the `!` before " + declared.type + ", and at the end: ; " + from +
                                      "." + port + " ! " + declared.name + ". " + given
                                : "input: { from: " + from + (port.empty() ? "" : "." + port) + ", " + given + " }"});
}

[[noreturn]] void refuse_param(const graph::Graph& graph, const graph::Handler& declared,
                               const plugin::HandlerInfo& info, const graph::Param& param) {
  std::vector<std::string> names = graph::reserved_keys();
  std::string known;
  for (const auto& p : info.params) {
    names.push_back(p.name);
    known += (known.empty() ? "" : ", ") + p.name;
  }
  const std::string nearest = nearest_name(param.name, names);
  const auto* meant = info.find_param(nearest);
  if (nearest.empty() && !info.ports.empty() && graph::is_edge_key(param.name)) refuse_edge_key(graph, declared, param);
  throw Failure(Error{310,
                      declared.name + " (" + info.type + ") has no parameter \"" + param.name + "\"",
                      param.name_place,
                      {meant ? plugin::described(*meant) : "parameters: " + (known.empty() ? "none" : known)},
                      nearest,
                      nearest.empty() ? "remove it; `millrace inspect " + info.type + "` describes the parameters"
                                      : assignment(param.name_place, nearest, param.text)});
}

// The port that an edge without a port name means: the only one on its side, or the only required input.
bool is_default(const plugin::HandlerInfo& info, uint32_t p, bool input) {
  uint32_t on_side = 0, required = 0;
  for (const auto& port : info.ports) {
    if (port.is_input() != input) continue;
    ++on_side;
    if (!port.optional()) ++required;
  }
  return on_side == 1 || (input && required == 1 && !info.ports[p].optional());
}

// With `kept`, mistakes of its parameters are added to it.
std::unique_ptr<plugin::Instance> make(const graph::Graph& graph, const graph::Handler& declared,
                                       const plugin::HandlerInfo& info, const mr_host& host, plugin::CallWatch* watch,
                                       std::vector<Error>* kept = nullptr) {
  auto instance = std::make_unique<plugin::Instance>(info, host, declared.name);
  instance->watch = watch;
  instance->patience_ns = declared.patience_ns;
  bool is_whole = !declared.refused; // else what is missing may be what was refused
  for (const graph::Param& param : declared.params) {
    const bool is_set = attempt(kept, [&] {
      const auto* known = info.find_param(param.name);
      if (!known) refuse_param(graph, declared, info, param);
      refuse_home(*known, param);
      instance->set_param(param.name, completed_path(*known, param), param.place);
    });
    is_whole = is_whole && is_set;
  }
  for (const auto& param : info.params) {
    const bool given = std::any_of(declared.params.begin(), declared.params.end(),
                                   [&](const graph::Param& p) { return p.name == param.name; });
    if (param.required() && !given && is_whole)
      throw Failure(Error{314,
                          declared.name + " (" + info.type + ") needs the parameter " + param.name,
                          declared.place,
                          {plugin::described(param)},
                          "",
                          assignment(declared.place, param.name, "…")});
  }
  return instance;
}

// The edges that begin or end at each handler, in the graph's order.
std::unordered_map<std::string_view, std::vector<const graph::Edge*>> edges_by_handler(const graph::Graph& graph) {
  std::unordered_map<std::string_view, std::vector<const graph::Edge*>> edges;
  for (const graph::Edge& edge : graph.edges) {
    edges[edge.source].push_back(&edge);
    if (edge.target != edge.source) edges[edge.target].push_back(&edge);
  }
  return edges;
}

// The flat counts that bind() takes, from the edges as declared; names were not checked yet, so unknown ones are passed
// over.
std::vector<uint32_t> count_edges(const std::vector<const graph::Edge*>& edges, const graph::Handler& declared,
                                  const plugin::HandlerInfo& info) {
  std::vector<uint32_t> counts(info.ports.size(), 0);
  const auto add = [&](const std::string& port, bool input) {
    for (uint32_t p = 0; p < info.ports.size(); ++p) {
      if (info.ports[p].is_input() != input) continue;
      if (info.ports[p].name != port && !(port.empty() && is_default(info, p, input))) continue;
      if (input)
        ++counts[p];
      else
        counts[p] = 1;
      return;
    }
  };
  for (const graph::Edge* edge : edges) {
    if (edge->target == declared.name) add(edge->target_port, true);
    if (edge->source == declared.name) add(edge->source_port, false);
  }
  return counts;
}

void run_passes(Draft& draft) {
  place(draft);
  expand(draft);
  route(draft);
  attend(draft);
  order_steps(draft);
  find_levels(draft);
  share_buffers(draft);
  order_steps(draft);
  find_levels(draft);
  check_pending_loops(draft);
  pack(draft);
  partition(draft);
  capture(draft);
  presume(draft);
  hold_circles(draft);
  lay_out(draft);
  schedule(draft.plan);
  describe_conversions(draft);
  const PredictedLatency latency = predict_latency(draft.plan);
  if (latency.unknown == 0) draft.plan.latency_us = latency.us;
}

// What each port takes or makes with the parameters that are set.
void narrow(Prepared& prepared, const graph::Handler& declared) {
  plugin::Instance& instance = *prepared.instance;
  for (uint32_t port = 0; port < instance.info().ports.size(); ++port) {
    mr_format accepts = instance.info().ports[port].raw.accepts;
    if (instance.narrow(port, accepts) != MR_OK)
      throw Failure(refusal(402, declared.name + " (" + declared.type + ") refuses: ", declared, instance.info(),
                            instance.error()));
    prepared.accepts.push_back(accepts);
  }
}

// Adds a conversion between an output and those of its readers that want the same.
void insert_conversion(graph::Graph& graph, Facts& facts, const plugin::Registry& registry, const mr_host& host,
                       const Draft& draft, const Conversion& conversion) {
  const graph::Edge& edge = graph.edges[conversion.edges[0]];
  const DraftEdge& drafted = draft.edges[conversion.edges[0]];
  graph::Handler convert;
  convert.type = conversion.type;
  convert.name = edge.target + "~" + conversion.wish;
  for (int n = 2; graph.find(convert.name); ++n) convert.name = edge.target + "~" + conversion.wish + std::to_string(n);
  convert.place = edge.place;
  convert.clock = draft.plan.clocks[draft.handlers[drafted.source].clock].name;
  convert.inserted = true;
  for (const auto& [name, text] : conversion.settings) convert.params.push_back({name, text, edge.place, edge.place});
  const plugin::HandlerInfo* info = registry.find(convert.type);
  MR_ASSERT(info, "negotiation asks only for conversions that there are");
  Prepared prepared;
  prepared.name = convert.name;
  prepared.instance = make(graph, convert, *info, host, facts.watch);
  narrow(prepared, convert);
  graph::Edge first = edge;
  first.policy = graph::Policy::sync;
  first.delay = 0;
  first.initial_empty = false;
  first.domain.clear(); // where the bytes must be is said of what the readers get
  first.target = convert.name;
  first.target_port = "";
  first.target_index = 0;
  std::vector<const graph::Edge*> edges{&first};
  for (const size_t e : conversion.edges) {
    first.forbid_copy = first.forbid_copy || graph.edges[e].forbid_copy;
    graph.edges[e].source = convert.name;
    graph.edges[e].source_port = "";
    edges.push_back(&graph.edges[e]);
  }
  prepared.instance->bind(count_edges(edges, convert, *info));
  graph.edges.push_back(first);
  graph.handlers.push_back(convert);
  facts.handlers.push_back(std::move(prepared));
}

} // namespace

Facts prepare(graph::Graph& graph, const plugin::Registry& registry, const mr_host& host, bool probe,
              plugin::CallWatch* watch, std::vector<Error>* kept) {
  Facts facts;
  facts.probed = probe;
  facts.watch = watch;
  for (graph::Handler& declared : graph.handlers) {
    Prepared prepared;
    prepared.name = declared.name;
    const size_t mistakes = kept ? kept->size() : 0;
    attempt(kept, [&] {
      if (declared.refused && declared.type.empty()) return;
      prepared.instance = make(graph, declared, find_type(graph, registry, declared), host, watch, kept);
    });
    if (kept && kept->size() > mistakes) declared.refused = true; // a key that was to be `input`, for example
    prepared.facts.size = sizeof(mr_facts);
    prepared.facts.rate_den = 1;
    prepared.facts.tick_count = -1;
    facts.handlers.push_back(std::move(prepared));
  }
  if (kept) {
    Draft names{graph, facts, registry, {}, {}, {}, {}, {}, {}, {}};
    names.kept = kept;
    resolve(names);
    if (!kept->empty()) throw MistakesKept();
  }
  refuse_shared_files(graph, facts); // before anything is opened
  auto edges = edges_by_handler(graph);
  for (size_t h = 0; h < facts.handlers.size(); ++h) {
    const graph::Handler& declared = graph.handlers[h];
    Prepared& prepared = facts.handlers[h];
    const plugin::HandlerInfo& info = prepared.instance->info();
    attempt(kept, [&] {
      narrow(prepared, declared);
      if (prepared.instance->bind(count_edges(edges[declared.name], declared, info)) != MR_OK ||
          (probe && prepared.instance->probe(prepared.facts) != MR_OK))
        throw Failure(refusal(604, declared.name + " (" + info.type + ") could not be opened: ", declared, info,
                              prepared.instance->error()));
    });
  }
  if (kept && !kept->empty()) throw MistakesKept();
  return facts;
}

Plan compile(graph::Graph& graph, Facts& facts, const plugin::Registry& registry, const mr_host& host,
             const Machine& machine, const Options& options) {
  for (int round = 0; round < kConversionRoundsMax; ++round) {
    Draft draft{graph, facts, registry, machine, options, {}, {}, {}, {}, {}};
    draft.plan.name = graph.name;
    resolve(draft);
    assign_clocks(draft);
    const std::vector<Conversion> conversions = negotiate(draft);
    if (conversions.empty()) {
      run_passes(draft);
      return std::move(draft.plan);
    }
    for (const Conversion& conversion : conversions) insert_conversion(graph, facts, registry, host, draft, conversion);
  }
  throw Failure(Error{402, "the formats of this graph cannot be settled by conversions", {}, {}, "", ""});
}

std::unique_ptr<plugin::Instance> clone(const graph::Handler& declared, const plugin::HandlerInfo& info,
                                        const HandlerPlan& plan, const mr_host& host, plugin::CallWatch* watch) {
  auto instance = make({}, declared, info, host, watch);
  instance->bind(plan.edge_counts);
  return instance;
}

} // namespace millrace::plan
