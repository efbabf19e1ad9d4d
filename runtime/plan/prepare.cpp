// Makes handlers from what the graph says of them, and asks them for facts; see prepare.h.
#include "plan/prepare.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "graph/confine.h"
#include "graph/file_kind.h"
#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "plan/compile.h"
#include "plan/draft.h"
#include "plan/explained.h"
#include "plan/machine.h"
#include "plan/make_handler.h"
#include "plan/paths.h"
#include "plan/probe.h"
#include "plan/refusal.h"
#include "plan/stand_in.h"
#include "plugin/registry.h"

namespace millrace::plan {

namespace {

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

// A handler on its way from being made to being known.
struct Opened {
  const plugin::HandlerInfo* info = nullptr; // null: there is no instance here
  std::vector<Error> mistakes;               // those of its formats
  bool is_bound = false, probes = false;
  ProbeAnswer answer; // to bind and probe
};

Opened open(plugin::Instance& instance, const graph::Handler& declared, const std::vector<const graph::Edge*>& edges,
            HandlerFacts& facts) {
  Opened opened;
  opened.info = &instance.info();
  facts.answers = &instance;
  if (!attempt(&opened.mistakes, [&] { facts.accepts = narrowed(instance, declared); })) return opened;
  opened.is_bound = instance.bind(count_edges(edges, declared, instance.info())) == MR_OK;
  if (!opened.is_bound) opened.answer = {{}, instance.error(), instance.fault()};
  return opened;
}

void probe_opened(std::vector<std::unique_ptr<plugin::Instance>>& instances, std::vector<Opened>& opened) {
  std::vector<std::unique_ptr<plugin::Instance>*> asked;
  for (size_t h = 0; h < instances.size(); ++h)
    if (opened[h].probes) asked.push_back(&instances[h]);
  std::vector<ProbeAnswer> answers = probe_all(asked, no_facts());
  auto answer = answers.begin();
  for (Opened& one : opened)
    if (one.probes) one.answer = std::move(*answer++);
}

// A conversion has one input and one output, both connected.
const std::vector<uint32_t> kBothConnected = {1, 1};

std::unique_ptr<plugin::Instance> make_inserted(const graph::Handler& declared, const plugin::Registry& registry,
                                                const mr_host& host, plugin::CallWatch* watch) {
  auto instance = make({}, declared, find_type({}, registry, declared), host, watch);
  instance->bind(kBothConnected);
  return instance;
}

// The sentence with templates in the place of their instances.
std::string of_templates(const graph::Graph& graph, std::string sentence) {
  if (sentence.find('@') == std::string::npos) return sentence;
  for (const graph::Handler& handler : graph.handlers)
    if (const size_t at = sentence.find(handler.name); !handler.written_as.empty() && at != std::string::npos)
      sentence.replace(at, handler.name.size(), handler.written_as);
  return sentence;
}

// The instances of a template make the same mistake at the same place: it is told once. If it is the same in all words,
// it is the template's; else the first one is told, and stands for the others.
void merge_alike(const graph::Graph& graph, std::vector<Error>& kept) {
  std::map<std::tuple<int, std::string, int, int, std::string>, Error*> told;
  std::vector<bool> again;
  for (Error& error : kept) {
    const std::string sentence = of_templates(graph, error.what);
    const bool names_instance = sentence != error.what;
    const Place& place = error.place;
    const auto [first, is_new] =
        told.try_emplace({error.code, place.file, place.line, place.column, names_instance ? "" : sentence}, &error);
    again.push_back(!is_new && !place.file.empty());
    if (again.back() && of_templates(graph, first->second->what) == sentence) first->second->what = sentence;
  }
  size_t at = 0;
  std::erase_if(kept, [&](const Error&) { return again[at++]; });
}

// Ends if mistakes were kept.
void refuse_kept(const graph::Graph& graph, std::vector<Error>& kept) {
  merge_alike(graph, kept);
  if (!kept.empty()) throw MistakesKept();
}

// True if the source may be there later: its stream begins anew until it is.
bool may_come_later(const graph::Graph& graph, const graph::Handler& declared, const plugin::HandlerInfo& info) {
  return info.is_source() && std::any_of(graph.clocks.begin(), graph.clocks.end(), [&](const graph::Clock& clock) {
           return clock.restarts && clock.name == declared.clock;
         });
}

} // namespace

Prepared prepare(graph::Graph& graph, const plugin::Registry& registry, const mr_host& host, bool probe,
                 plugin::CallWatch* watch, std::vector<Error>* kept,
                 const std::function<Runs(const graph::Handler&)>& where, const graph::Confine* confine) {
  const auto runs = [&](const graph::Handler& declared) { return where ? where(declared) : Runs::here; };
  Prepared prepared;
  Facts& facts = prepared.facts;
  std::vector<std::unique_ptr<plugin::Instance>>& instances = prepared.handlers.instances;
  facts.probed = probe;
  prepared.handlers.watch = watch;
  for (graph::Handler& declared : graph.handlers) {
    const size_t mistakes = kept ? kept->size() : 0;
    instances.emplace_back();
    attempt(kept, [&] {
      if (declared.refused && declared.type.empty()) return;
      if (runs(declared) != Runs::here && !registry.find(declared.type)) return;
      instances.back() = make(graph, declared, find_type(graph, registry, declared), host, watch, kept);
    });
    if (kept && kept->size() > mistakes) declared.refused = true; // a key that was to be `input`, for example
    plugin::Answers* const answers = runs(declared) == Runs::elsewhere ? nullptr : instances.back().get();
    facts.handlers.push_back({declared.name, answers, no_facts(), {}, {}});
  }
  if (kept) {
    const LiveTypes types(registry, host);
    Draft names{graph, facts, types, {}, {}};
    names.kept = kept;
    resolve(names);
    refuse_kept(graph, *kept);
  }
  if (confine) refuse_outside(graph, facts, *confine, kept); // both before anything is opened
  if (kept) refuse_kept(graph, *kept);
  refuse_shared_files(graph, facts);
  auto edges = edges_by_handler(graph);
  std::vector<Opened> opened(instances.size());
  for (size_t h = 0; h < instances.size(); ++h) {
    if (!instances[h]) continue;
    const graph::Handler& declared = graph.handlers[h];
    opened[h] = open(*instances[h], declared, edges[declared.name], facts.handlers[h]);
    opened[h].probes =
        opened[h].is_bound && probe && !graph::is_place_name(declared.stream) && runs(declared) != Runs::elsewhere;
  }
  probe_opened(instances, opened);
  for (size_t h = 0; h < instances.size(); ++h) {
    if (!opened[h].info) continue;
    const graph::Handler& declared = graph.handlers[h];
    const plugin::HandlerInfo& info = *opened[h].info;
    const ProbeAnswer& answer = opened[h].answer;
    attempt(kept, [&] {
      if (!opened[h].mistakes.empty()) throw Failure(opened[h].mistakes.front());
      if (answer.error.empty()) {
        if (opened[h].probes) facts.handlers[h].facts = answer.facts;
        return;
      }
      if (runs(declared) == Runs::perhaps_here) {
        prepared.unable[declared.name] = answer.error;
        facts.handlers[h] = {declared.name, nullptr, no_facts(), {}, {}};
        instances[h].reset();
        return;
      }
      const Error error = not_opened(declared, info, answer);
      if (!opened[h].probes || !may_come_later(graph, declared, info)) throw Failure(error);
      instances[h] = make(graph, declared, find_type(graph, registry, declared), host, watch); // in no call
      open(*instances[h], declared, edges[declared.name], facts.handlers[h]);
      facts.handlers[h].absent = error;
    });
  }
  if (kept) refuse_kept(graph, *kept);
  stand_in(graph, facts);
  return prepared;
}

std::vector<mr_format> formats_of_source(const graph::Handler& declared, const HandlerFacts& source) {
  const plugin::HandlerInfo& info = source.answers->info();
  std::vector<mr_format> outputs;
  for (size_t port = 0; port < info.ports.size(); ++port) {
    if (info.ports[port].is_input()) continue;
    outputs.push_back(source.accepts[port]);
    outputs.back().size = sizeof(mr_format);
  }
  if (source.answers->configure({}, outputs) != MR_OK)
    throw Failure(refusal(code::incompatible_formats, declared.name + " (" + info.type + ") refuses: ", declared,
                          *source.answers));
  return outputs;
}

std::vector<const plugin::HandlerInfo*> LiveTypes::all() const {
  const std::vector<const plugin::RegisteredType*> types = registry_.all();
  return {types.begin(), types.end()};
}

const plugin::HandlerInfo* LiveTypes::converter(uint32_t role) const { return registry_.find_converter(role); }

Types::Answering LiveTypes::answering(const graph::Handler& declared) const {
  auto instance = make_inserted(declared, registry_, host_, watch_);
  std::vector<mr_format> accepts = narrowed(*instance, declared);
  return {std::move(instance), std::move(accepts)};
}

Plan compile(const graph::Graph& graph, Prepared& prepared, const plugin::Registry& registry, const mr_host& host,
             const Machine& machine, const Options& options) {
  prepared.handlers.instances.resize(graph.handlers.size()); // an earlier plan may have inserted others
  Plan plan = compile(graph, prepared.facts, LiveTypes(registry, host, prepared.handlers.watch), machine, options);
  for (const InsertedPlan& inserted : plan.inserted) {
    auto instance = make_inserted(inserted.declared, registry, host, prepared.handlers.watch);
    if (const uint32_t step = plan.handlers[inserted.handler].step; step != kNone)
      configure(*instance, plan, plan.steps[step]);
    prepared.handlers.instances.push_back(std::move(instance));
  }
  return plan;
}

const graph::Handler& declared_of(const Plan& plan, const graph::Graph& graph, uint32_t handler) {
  const size_t declared = graph.handlers.size();
  return handler < declared ? graph.handlers[handler] : plan.inserted[handler - declared].declared;
}

std::unique_ptr<plugin::Instance> clone(const Plan& plan, const graph::Graph& graph, uint32_t handler,
                                        const plugin::RegisteredType& type, const mr_host& host,
                                        plugin::CallWatch* watch) {
  auto instance = make({}, declared_of(plan, graph, handler), type, host, watch);
  instance->bind(plan.handlers[handler].edge_counts);
  configure(*instance, plan, plan.steps[plan.handlers[handler].step]);
  return instance;
}

} // namespace millrace::plan
