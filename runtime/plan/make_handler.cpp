// Makes handlers and sets their parameters; see make_handler.h.
#include "plan/make_handler.h"

#include <algorithm>

#include "graph/file_kind.h"
#include "graph/params.h"
#include "graph/stray_word.h"
#include "observe/error_codes.h"
#include "plan/memory.h"
#include "plan/paths.h"
#include "plan/plan.h"
#include "plan/refusal.h"
#include "plan/step.h"
#include "plugin/foreign_names.h"
#include "plugin/registry.h"

namespace millrace::plan {

const plugin::RegisteredType& find_type(const graph::Graph& graph, const plugin::Registry& registry,
                                        const graph::Handler& declared) {
  if (const plugin::RegisteredType* info = registry.find(declared.type)) return *info;
  Error error = plugin::unknown_type(registry, code::unknown_type, declared.type);
  error.place = declared.type_place;
  const bool in_a_line = declared.type_place.is_one_line();
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

namespace {

// The parameter that takes the handler's path; null if it opens no file.
const plugin::HandlerInfo::Param* path_param(const plugin::HandlerInfo& info) {
  const plugin::HandlerInfo::Param* found = nullptr;
  for (const auto& param : info.params) {
    if (!(param.raw.flags & (MR_PARAM_READS_PATH | MR_PARAM_WRITES_PATH))) continue;
    if (!found || (param.required() && !found->required())) found = &param;
  }
  return found;
}

// Refuses a key of an edge that stands among the parameters of the handler that the edge leads to.
[[noreturn]] void refuse_edge_key(const graph::Graph& graph, const graph::Handler& declared,
                                  const graph::Param& param) {
  const auto edge = std::find_if(graph.edges.begin(), graph.edges.end(),
                                 [&](const graph::Edge& e) { return e.target == declared.name; });
  const std::string from = edge == graph.edges.end() ? "…" : edge->source;
  const bool in_a_line = param.name_place.is_one_line();
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

// Refuses a parameter that other programs have, if the handler has one that does the same. Returns if it has none.
void refuse_foreign_param(const graph::Handler& declared, const plugin::HandlerInfo& info, const graph::Param& param) {
  std::vector<const plugin::HandlerInfo::Param*> ours;
  for (const std::string_view name : plugin::parameters_for(param.name)) {
    const auto* own = info.find_param(std::string(name));
    if (name == "path") own = path_param(info);
    if (own) ours.push_back(own);
  }
  if (ours.empty()) return;
  constexpr const char* kSomeWidth = "640"; // a usual one, where the text is no size: scale=0.5
  const plugin::HandlerInfo::Param& first = *ours[0];
  Error error{code::unknown_parameter,
              declared.name + " (" + info.type + ") has no parameter \"" + param.name + "\"",
              param.name_place,
              {},
              first.name,
              assignment(param.name_place, first.name, param.text)};
  for (const auto* own : ours) error.notes.push_back(plugin::described(*own));
  if (first.name == "width" && ours.size() > 1) {
    const bool in_a_line = param.name_place.is_one_line();
    error.edit = graph::as_size(param.text, in_a_line ? "=" : ": ", in_a_line ? " " : ", ");
    if (error.edit.empty()) error.edit = assignment(param.name_place, "width", kSomeWidth);
    error.nearest.clear(); // two of them
  }
  throw Failure(std::move(error));
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
  if (!meant) refuse_foreign_param(declared, info, param);
  if (nearest.empty() && !info.ports.empty() && graph::is_edge_key(param.name)) refuse_edge_key(graph, declared, param);
  throw Failure(Error{code::unknown_parameter,
                      declared.name + " (" + info.type + ") has no parameter \"" + param.name + "\"",
                      param.name_place,
                      {meant ? plugin::described(*meant) : "parameters: " + (known.empty() ? "none" : known)},
                      nearest,
                      nearest.empty() ? "remove it; `millrace inspect " + info.type + "` describes the parameters"
                                      : assignment(param.name_place, nearest, param.text)});
}

} // namespace

std::unique_ptr<plugin::Instance> make(const graph::Graph& graph, const graph::Handler& declared,
                                       const plugin::RegisteredType& info, const mr_host& host,
                                       plugin::CallWatch* watch, std::vector<Error>* kept) {
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
    if (param.required() && !graph::find_param(declared.params, param.name) && is_whole)
      throw Failure(Error{code::missing_parameter,
                          declared.name + " (" + info.type + ") needs the parameter " + param.name,
                          declared.place,
                          {plugin::described(param)},
                          "",
                          assignment(declared.place, param.name, "…")});
  }
  return instance;
}

std::vector<mr_format> narrowed(plugin::Instance& instance, const graph::Handler& declared) {
  std::vector<mr_format> all;
  for (uint32_t port = 0; port < instance.info().ports.size(); ++port) {
    mr_format accepts = instance.info().ports[port].raw.accepts;
    if (instance.narrow(port, accepts) != MR_OK)
      throw Failure(refusal(code::incompatible_formats, declared.name + " (" + declared.type + ") refuses: ", declared,
                            instance));
    all.push_back(accepts);
  }
  return all;
}

void configure(plugin::Instance& instance, const Plan& plan, const Step& step) {
  std::vector<mr_format> inputs, outputs;
  for (const StepInput& input : step.inputs)
    inputs.push_back(input.output == kNone ? mr_format{} : plan.outputs[input.output].format);
  for (const uint32_t output : step.outputs) outputs.push_back(plan.outputs[output].format);
  instance.configure(inputs, outputs);
}

mr_facts no_facts() {
  mr_facts facts{};
  facts.size = sizeof(mr_facts);
  facts.rate_den = 1;
  facts.time_den = 1;
  facts.tick_count = -1;
  return facts;
}

} // namespace millrace::plan
