// Composes a pipeline from the options of a command or an application: loads it, applies --set, loads its plugins, and
// decides on devices, machine file and node.
#pragma once

#include <memory>
#include <string>

#include "compose/options.h"
#include "embed/compose.h"
#include "node/told_handlers.h"

namespace millrace::compose {

// The members die in the reverse order: the composition first.
struct Compiled {
  std::unique_ptr<plugin::Registry> registry;
  std::unique_ptr<node::ToldHandlers> told; // null: all handlers are here
  std::unique_ptr<embed::Composition> composition;
};

// Throws Failure. `warn` receives the warnings about plugins. `watch` watches the calls of handlers; null: none are
// watched. If `kept` is given, mistakes that do not follow from each other are added to it, and MistakesKept is thrown
// if there are any; the plans of all nodes are then compiled too.
Compiled compile(const PipelineOptions& options, const Warn& warn, std::shared_ptr<plugin::CallWatch> watch = nullptr,
                 std::vector<Error>* kept = nullptr);

// The plan of the node that the options name, as the nodes last agreed on it. If they never did, or not here, or if
// the options name devices, threads, a machine, a clock or facts, it is the plan that this machine makes alone. So it
// is, after a warning, if another version of the program kept what they agreed on. Throws Failure.
Compiled compile_node(const PipelineOptions& options, const Warn& warn);

// A pipeline of which this process runs one node.
struct NodePipeline {
  std::unique_ptr<plugin::Registry> registry;
  graph::Graph graph;
  embed::Choices choices;
  // Makes and probes the node's handlers. Throws Failure.
  embed::Preparation prepare() const;
};
// Throws Failure.
NodePipeline load_node(const PipelineOptions& options, const Warn& warn, std::shared_ptr<plugin::CallWatch> watch);

// Measures the times of the handlers' bodies on each of the devices that were named.
std::vector<plan::BodyCost> measure_bodies(const PipelineOptions& options, uint64_t ticks, const Warn& warn);

// The devices that were named; the host, if none were. Throws Failure as embed::parse_domains() does.
std::vector<std::string> domains_of(const PipelineOptions& options);

// The path of the machine file: the one that was named, else that of this machine; "": there is none.
std::string machine_path(const PipelineOptions& options);

} // namespace millrace::compose
