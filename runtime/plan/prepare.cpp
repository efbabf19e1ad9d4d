// Makes handlers from what the graph says of them, and asks them for facts; see prepare.h.
#include "plan/prepare.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "graph/file_kind.h"
#include "graph/unfold.h"
#include "plan/draft.h"
#include "plan/format_text.h"
#include "plan/paths.h"
#include "plan/probe.h"
#include "plan/refusal.h"

namespace millrace::plan {

namespace {

const plugin::RegisteredType& find_type(const graph::Graph& graph, const plugin::Registry& registry,
                                        const graph::Handler& declared) {
  if (const plugin::RegisteredType* info = registry.find(declared.type)) return *info;
  Error error = plugin::unknown_type(registry, code::unknown_type, declared.type);
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

// Refuses a key of an edge that stands among the parameters of the handler that the edge leads to.
[[noreturn]] void refuse_edge_key(const graph::Graph& graph, const graph::Handler& declared,
                                  const graph::Param& param) {
  const auto edge = std::find_if(graph.edges.begin(), graph.edges.end(),
                                 [&](const graph::Edge& e) { return e.target == declared.name; });
  const std::string from = edge == graph.edges.end() ? "…" : edge->source;
  const bool in_a_line = param.name_place.file == "pipeline";
  const std::string given = param.name + (in_a_line ? "=" : ": ") + param.text;
  const std::string port = edge == graph.edges.end() || edge->source_port.empty() ? "" : edge->source_port;
  throw Failure(Error{code::unknown_parameter,
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
  throw Failure(Error{code::unknown_parameter,
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
                                       const plugin::RegisteredType& info, const mr_host& host,
                                       plugin::CallWatch* watch, std::vector<Error>* kept = nullptr) {
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
      throw Failure(Error{code::missing_parameter,
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

// The format that each port takes or makes with the parameters that are set.
std::vector<mr_format> narrowed(plugin::Instance& instance, const graph::Handler& declared) {
  std::vector<mr_format> all;
  for (uint32_t port = 0; port < instance.info().ports.size(); ++port) {
    mr_format accepts = instance.info().ports[port].raw.accepts;
    if (instance.narrow(port, accepts) != MR_OK)
      throw Failure(refusal(code::incompatible_formats, declared.name + " (" + declared.type + ") refuses: ", declared,
                            instance.info(), instance.error()));
    all.push_back(accepts);
  }
  return all;
}

mr_facts no_facts() {
  mr_facts facts{};
  facts.size = sizeof(mr_facts);
  facts.rate_den = 1;
  facts.tick_count = -1;
  return facts;
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
  if (!opened.is_bound) opened.answer.error = instance.error();
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

void configure(plugin::Instance& instance, const Plan& plan, const Step& step) {
  std::vector<mr_format> inputs, outputs;
  for (const StepInput& input : step.inputs)
    inputs.push_back(input.output == kNone ? mr_format{} : plan.outputs[input.output].format);
  for (const uint32_t output : step.outputs) outputs.push_back(plan.outputs[output].format);
  instance.configure(inputs, outputs);
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
void tell_once(const graph::Graph& graph, std::vector<Error>& kept) {
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
  tell_once(graph, kept);
  if (!kept.empty()) throw MistakesKept();
}

// The place of a stream that comes later is planned like the first stream: with what its source says.
void plan_places(const graph::Graph& graph, Facts& facts) {
  for (size_t h = 0; h < facts.handlers.size(); ++h) {
    const graph::Handler& place = graph.handlers[h];
    HandlerFacts& own = facts.handlers[h];
    if (!graph::is_place_name(place.stream) || !own.answers || !own.answers->info().is_source()) continue;
    for (size_t m = 0; m < h; ++m) {
      const graph::Handler& model = graph.handlers[m];
      if (model.written_as != place.written_as || !facts.handlers[m].answers) continue;
      own.facts = facts.handlers[m].facts;
      own.outputs = formats_of_source(model, facts.handlers[m]);
      break;
    }
  }
}

} // namespace

Prepared prepare(graph::Graph& graph, const plugin::Registry& registry, const mr_host& host, bool probe,
                 plugin::CallWatch* watch, std::vector<Error>* kept,
                 const std::function<Runs(const graph::Handler&)>& where) {
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
  refuse_shared_files(graph, facts); // before anything is opened
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
      if (runs(declared) != Runs::perhaps_here)
        throw Failure(refusal(code::probe_failed, declared.name + " (" + info.type + ") could not be opened: ",
                              declared, info, answer.error));
      prepared.unable[declared.name] = answer.error;
      facts.handlers[h] = {declared.name, nullptr, no_facts(), {}, {}};
      instances[h].reset();
    });
  }
  if (kept) refuse_kept(graph, *kept);
  plan_places(graph, facts);
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
    throw Failure(refusal(code::incompatible_formats, declared.name + " (" + info.type + ") refuses: ", declared, info,
                          source.answers->error()));
  return outputs;
}

void know_from(const Plan& plan, Facts& facts) {
  for (HandlerFacts& handler : facts.handlers) {
    const auto known = std::find_if(plan.handlers.begin(), plan.handlers.end(),
                                    [&](const HandlerPlan& other) { return other.name == handler.name; });
    if (known == plan.handlers.end()) continue;
    handler.facts = known->facts;
    if (!handler.answers->info().is_source() || known->step == kNone) continue;
    handler.outputs.clear();
    for (const uint32_t output : plan.steps[known->step].outputs)
      handler.outputs.push_back(plan.outputs[output].format);
  }
}

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

namespace {

bool is_captured(const Plan& plan, uint32_t step) {
  return std::any_of(plan.regions.begin(), plan.regions.end(), [&](const Region& region) {
    return std::find(region.steps.begin(), region.steps.end(), step) != region.steps.end();
  });
}

bool same_params(const graph::Handler& a, const graph::Handler& b) {
  return std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(),
                    [](const graph::Param& x, const graph::Param& y) { return x.name == y.name && x.text == y.text; });
}

// Memory is planned: a value may be smaller than that of the first stream, and of no other kind.
void check_fits(const graph::Handler& declared, const plugin::HandlerInfo& info, const mr_format& own,
                const mr_format& planned) {
  const bool is_like = own.kind == planned.kind && (own.pixel_formats & planned.pixel_formats) == own.pixel_formats &&
                       own.dtype_code == planned.dtype_code && own.dtype_bits == planned.dtype_bits &&
                       own.rank == planned.rank && own.schema == planned.schema;
  bool is_small = own.width <= planned.width && own.height <= planned.height;
  for (uint32_t d = 0; d < own.rank && d < planned.rank; ++d) is_small = is_small && own.shape[d] <= planned.shape[d];
  if (is_like && is_small) return;
  throw Failure(refusal(code::incompatible_formats,
                        declared.name + " (" + info.type + ") does not fit into the plan: ", declared, info,
                        "it gives " + format_words(own) + ", and there is room for " + format_words(planned)));
}

} // namespace

MadeStream make_stream(const graph::Graph& written, const graph::Graph& unfolded, const Plan& plan, uint32_t clock,
                       const graph::Stream& stream, const plugin::Registry& registry, const mr_host& host,
                       plugin::CallWatch* watch) {
  MadeStream made;
  for (uint32_t h = 0; h < plan.handlers.size(); ++h) {
    const HandlerPlan& place = plan.handlers[h];
    if (place.clock != clock || place.stream.empty()) continue;
    graph::StreamSet set = *unfolded.find_set(plan.clocks[clock].set);
    const auto own = std::find_if(set.items.begin(), set.items.end(),
                                  [&](const graph::Stream& item) { return item.name == place.stream; });
    *own = stream; // {index} is the place's
    const graph::Handler declared = graph::make_instance(*written.find(place.written_as), set, *own);
    if (is_captured(plan, place.step)) {
      if (same_params(declared, declared_of(plan, unfolded, h))) continue;
      throw Failure(Error{code::no_place,
                          "\"" + stream.name + "\" cannot have values of its own for " + place.written_as,
                          {},
                          {"it is captured on " + plan.domains[place.domain].name + " with others"},
                          "",
                          ""});
    }
    auto instance = make(written, declared, find_type(written, registry, declared), host, watch);
    const std::vector<mr_format> accepts = narrowed(*instance, declared);
    const plugin::HandlerInfo& info = instance->info();
    if (instance->bind(place.edge_counts) != MR_OK)
      throw Failure(refusal(code::probe_failed, declared.name + " (" + info.type + ") refuses: ", declared, info,
                            instance->error()));
    const Step& step = plan.steps[place.step];
    if (!info.is_source()) {
      configure(*instance, plan, step);
    } else {
      mr_facts facts = no_facts();
      if (instance->probe(facts) != MR_OK)
        throw Failure(refusal(code::probe_failed, declared.name + " (" + info.type + ") could not be opened: ",
                              declared, info, instance->error()));
      HandlerFacts asked{declared.name, instance.get(), facts, {}, accepts};
      const std::vector<mr_format> formats = formats_of_source(declared, asked);
      for (size_t o = 0; o < formats.size(); ++o)
        check_fits(declared, info, formats[o], plan.outputs[step.outputs[o]].format);
      made.facts.emplace_back(h, facts);
    }
    made.instances.emplace_back(h, std::move(instance));
  }
  return made;
}

} // namespace millrace::plan
