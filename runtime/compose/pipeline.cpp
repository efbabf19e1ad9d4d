// See pipeline.h.
#include "compose/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "compose/node_folder.h"
#include "compose/plugins.h"
#include "embed/calibrate.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "graph/confine.h"
#include "graph/stray_word.h"
#include "node/documents.h"
#include "node/kept_brief.h"
#include "node/offers.h"
#include "observe/error_codes.h"
#include "observe/printable.h"
#include "plan/plan.h"

namespace millrace::compose {

namespace {

// For "width=64" without a handler: adds to the error which handlers of the pipeline have such a parameter.
Error with_owner(Error error, const graph::Graph& graph, const std::string& set, const PipelineOptions& options) {
  const std::string key = set.substr(0, set.find('='));
  if (error.code != code::unreadable_assignment || key.empty() || key.size() == set.size() ||
      key.find('.') != std::string::npos)
    return error;
  plugin::Registry registry;
  scan_for(registry, graph, options.plugin_paths, options.installed_plugins);
  std::string owners;
  for (const graph::Handler& handler : graph.handlers) {
    const plugin::HandlerInfo* info = registry.find(handler.type);
    if (!info || !info->find_param(key)) continue;
    if (owners.empty()) error.edit = "--set " + handler.name + "." + set;
    owners += (owners.empty() ? "" : ", ") + handler.name;
  }
  error.notes.push_back(owners.empty() ? "no handler of the pipeline has a parameter '" + key + "'"
                                       : "handlers with a parameter '" + key + "': " + owners);
  if (owners.empty()) error.edit = "";
  return error;
}

// Throws Failure (MR0104).
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(code::file_not_found, "cannot read " + path + ": " + std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Null: files may be anywhere. Throws Failure (MR0122) unless the files of the options are in the folder.
std::shared_ptr<const graph::Confine> confine_of(const PipelineOptions& options) {
  if (options.confine.empty()) return nullptr;
  auto confine = std::make_shared<const graph::Confine>(options.confine);
  confine->require("--plan", options.plan, false);
  confine->require("--facts", options.facts, false);
  confine->require("--machine", options.machine, false);
  return confine;
}

// Plugins know nothing of the machine file. What it says of their engines they get as the variable that a user would
// set, unless the user has set it. Nothing of the pipeline runs yet, so no other thread reads variables.
void tell_engines(const embed::MachineFile& machine, const std::string& path) {
  if (machine.onnxruntime.empty()) return;
  const std::filesystem::path library = std::filesystem::path(path).parent_path() / machine.onnxruntime;
  ::setenv("MILLRACE_ONNXRUNTIME", library.c_str(), 0);
}

// `machine_may_come`: a machine file that was named need not exist yet; the command will write it.
embed::Choices choices_of(const PipelineOptions& options, bool machine_may_come) {
  embed::Choices choices;
  choices.confine = confine_of(options);
  if (!options.plan.empty()) choices.saved = embed::parse_plan(read_file(options.plan));
  choices.domains = options.plan.empty() ? domains_of(options) : choices.saved.domains;
  choices.threads = options.threads;
  if (!options.clock.empty()) choices.clock = embed::parse_clock_mode(options.clock);
  if (!options.rate.empty()) choices.rate = embed::parse_rate(options.rate);
  choices.probe = !options.no_probe;
  if (!options.facts.empty()) choices.facts = read_file(options.facts);
  choices.machine = embed::load_machine(machine_path(options), !options.machine.empty() && !machine_may_come);
  tell_engines(choices.machine, machine_path(options));
  return choices;
}

graph::Graph load(const PipelineOptions& options, std::vector<Error>* kept = nullptr) {
  const std::shared_ptr<const graph::Confine> confine = confine_of(options);
  std::optional<plugin::Registry> registry; // for a mistake that only the declaration of a type explains
  const auto find_type = [&](const std::string& type) {
    if (!registry) registry.emplace();
    scan_for(*registry, type, options.plugin_paths, options.installed_plugins);
    return registry->find(type);
  };
  graph::Graph graph = graph::load_confined(options.pipeline, confine.get(), kept, find_type);
  for (const std::string& set : options.sets)
    attempt(kept, [&] {
      try {
        graph::apply_set(graph, set);
      } catch (const Failure& failure) {
        throw Failure(with_owner(failure.error(), graph, set, options));
      }
    });
  return graph;
}

// The number of a node. Throws Failure if the pipeline has none of this name.
uint32_t require_node(const graph::Graph& graph, const std::string& node) {
  const std::vector<std::string> names = graph::node_names(graph);
  const auto found = std::find(names.begin(), names.end(), node);
  if (found != names.end()) return static_cast<uint32_t>(found - names.begin());
  Error error{code::bad_command_line, "the pipeline has no node \"" + node + "\"", {}, {}, "", ""};
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  error.notes.push_back(names.empty() ? "it has no 'nodes:'" : "nodes: " + list);
  error.nearest = nearest_name(node, names);
  if (!names.empty()) error.edit = "--node " + (error.nearest.empty() ? names[0] : error.nearest);
  throw Failure(std::move(error));
}

// The options for one node; for this machine alone if `node` is "".
plan::Options options_for(const embed::Preparation& preparation, const std::string& node) {
  return node.empty() ? preparation.options() : preparation.options_of_node(require_node(preparation.graph(), node));
}

// Throws Failure if a node has no plan: a graph that runs on one machine may be one that cannot be spread over nodes.
void compile_each_node(embed::Preparation& preparation) {
  const size_t count = preparation.graph().nodes.size();
  for (uint32_t node = 0; node < count; ++node) (void)preparation.compile(preparation.options_of_node(node));
}

// `needed`: the part of the graph whose plugins have to be here.
std::unique_ptr<plugin::Registry> registry_for(const graph::Graph& graph, const graph::Graph& needed,
                                               const PipelineOptions& options, const Warn& warn) {
  auto registry = std::make_unique<plugin::Registry>();
  scan_for(*registry, graph, options.plugin_paths, options.installed_plugins);
  require_plugins(*registry, needed);
  warn_of_failures(*registry, options.plugin_paths, warn);
  return registry;
}

// The devices that the pipeline gives to the node, unless the command line names some.
void use_devices(const graph::Graph& graph, const PipelineOptions& options, embed::Choices& choices) {
  for (const graph::Node& node : graph.nodes)
    if (node.name == options.node && !node.devices.empty() && options.devices.empty() && options.plan.empty())
      choices.domains = embed::parse_domains(fmt::format("{}", fmt::join(node.devices, ",")));
}

// True if the command line has a say in what the nodes agreed on.
bool decides_for_itself(const PipelineOptions& options) {
  const bool names_machine = !options.devices.empty() || options.threads > 0 || !options.machine.empty();
  const bool names_times = !options.clock.empty() || !options.rate.empty();
  return names_machine || names_times || !options.plan.empty() || !options.facts.empty() || options.no_probe;
}

// The brief that the nodes of the pipeline last agreed on, if this machine was one of them.
std::optional<node::KeptBrief> last_brief(const graph::Graph& graph) {
  try {
    return node::kept_brief(node_folder(), node::sha256(graph::to_yaml(graph)));
  } catch (const Failure&) {
    return std::nullopt; // there is no place for a key either
  }
}

} // namespace

Compiled compile(const PipelineOptions& options, const Warn& warn, std::shared_ptr<plugin::CallWatch> watch,
                 std::vector<Error>* kept) {
  embed::Choices choices = choices_of(options, false);
  choices.watch = std::move(watch);
  choices.kept = kept;
  graph::Graph graph = load(options, kept);
  use_devices(graph, options, choices);
  Compiled compiled;
  compiled.registry = registry_for(graph, graph, options, warn);
  embed::Preparation preparation(std::move(graph), *compiled.registry, exec::host_table(), choices);
  const plan::Options chosen = options_for(preparation, options.node);
  if (kept) compile_each_node(preparation);
  compiled.composition = std::make_unique<embed::Composition>(std::move(preparation), chosen);
  return compiled;
}

namespace {

// The plan that the nodes agreed on. Throws Failure: MR0805 if this program cannot read it.
Compiled compile_agreed(const PipelineOptions& options, graph::Graph graph, const node::KeptBrief& kept,
                        const Warn& warn) {
  embed::Choices choices = choices_of(options, false);
  choices.elsewhere = true;
  Compiled compiled;
  compiled.registry = registry_for(graph, {}, options, warn);
  compiled.told = std::make_unique<node::ToldHandlers>();
  embed::Preparation preparation(std::move(graph), *compiled.registry, exec::host_table(), choices);
  node::Decided decided = node::read_brief(kept.body, "", preparation, *compiled.told);
  preparation.use_machine(node::read_machine(decided.machines[options.node], options.node));
  plan::Options chosen = node::options_by(decided, preparation, options.node);
  chosen.notes.insert(chosen.notes.begin(), "as the nodes agreed on it at " + kept.when);
  compiled.composition = std::make_unique<embed::Composition>(std::move(preparation), chosen);
  return compiled;
}

} // namespace

Compiled compile_node(const PipelineOptions& options, const Warn& warn) {
  graph::Graph graph = load(options);
  const std::optional<node::KeptBrief> kept = last_brief(graph);
  if (!kept || decides_for_itself(options)) return compile(options, warn);
  require_node(graph, options.node);
  try {
    return compile_agreed(options, std::move(graph), *kept, warn);
  } catch (const Failure& failure) {
    if (failure.error().code != code::other_version) throw;
    if (warn)
      warn(
          fmt::format("warning {}: what the nodes agreed on at {} was kept by another version of millrace and is not "
                      "used: {}",
                      format_code(failure.error().code), kept->when, printable(failure.error().what)));
    return compile(options, nullptr); // its plugins have had their warnings
  }
}

embed::Preparation NodePipeline::prepare() const { return {graph, *registry, exec::host_table(), choices}; }

NodePipeline load_node(const PipelineOptions& options, const Warn& warn, std::shared_ptr<plugin::CallWatch> watch) {
  NodePipeline pipeline;
  pipeline.choices = choices_of(options, false);
  pipeline.choices.watch = std::move(watch);
  pipeline.choices.node = options.node;
  pipeline.graph = load(options);
  require_node(pipeline.graph, options.node);
  use_devices(pipeline.graph, options, pipeline.choices);
  graph::Graph own = pipeline.graph;
  // One that names no node may run on another one, which has its plugin.
  std::erase_if(own.handlers, [&](const graph::Handler& handler) { return handler.node != options.node; });
  pipeline.registry = registry_for(pipeline.graph, own, options, warn);
  return pipeline;
}

std::vector<plan::BodyCost> measure_bodies(const PipelineOptions& options, uint64_t ticks, const Warn& warn) {
  const embed::Choices choices = choices_of(options, true);
  const graph::Graph graph = load(options);
  const std::unique_ptr<plugin::Registry> registry = registry_for(graph, graph, options, warn);
  return embed::measure_bodies([&] { return load(options); }, *registry, exec::host_table(), choices, ticks);
}

std::vector<std::string> domains_of(const PipelineOptions& options) {
  return embed::parse_domains(options.devices.empty() ? "cpu" : options.devices);
}

std::string machine_path(const PipelineOptions& options) {
  return options.machine.empty() ? embed::machine_path() : options.machine;
}

} // namespace millrace::compose
