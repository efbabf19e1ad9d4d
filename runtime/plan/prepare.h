// Live handlers of a graph: they are made, given their parameters and asked for facts before the plan is compiled. The
// one part of this folder that makes and calls handlers; the compiler asks them through plugin::Answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/facts.h"

namespace millrace::graph {
class Confine;
struct Graph;
struct Handler;
} // namespace millrace::graph
namespace millrace::plugin {
class CallWatch;
class Instance;
class Registry;
struct RegisteredType;
} // namespace millrace::plugin

namespace millrace::plan {

struct Machine;
struct Options;
struct Plan;

// Handlers in the graph's order, then those that the plan inserted. Null: another node runs it, and its type is not
// known here.
struct Handlers {
  std::vector<std::unique_ptr<plugin::Instance>> instances;
  plugin::CallWatch* watch = nullptr; // told of their calls
};

struct Prepared {
  Handlers handlers;
  Facts facts;                               // asks the handlers
  std::map<std::string, std::string> unable; // by handler that might have run here: why it cannot
};

// The machine that runs a handler, if several run the graph.
enum class Runs {
  here,
  elsewhere,
  perhaps_here // it names no node: here, if this machine can, or elsewhere
};

// Makes the instances of a graph: looks types up, checks and sets parameters, binds ports, probes.
// Throws Failure (MR0304, MR0310…, MR0604).
// `watch` is told of the handlers' calls and outlives them; null: nothing is told.
// With `kept`, mistakes that do not follow from each other are added to it, and then MistakesKept is thrown: all
// mistakes of names, parameters and edges; if there are none, all sources that cannot be opened, in the text's order.
// Sources are probed side by side (probe.h).
// Without `where`, all handlers run here. Those that run elsewhere are not probed. One whose type is not known here has
// neither an instance nor answers, unless it has to run here: its own node has to tell what the compiler asks. Nor has
// one that might run here and cannot be opened.
// With `confine`, all files of the handlers that run here have to be in its folder (MR0422).
Prepared prepare(graph::Graph& graph, const plugin::Registry& registry, const mr_host& host, bool probe = true,
                 plugin::CallWatch* watch = nullptr, std::vector<Error>* kept = nullptr,
                 const std::function<Runs(const graph::Handler&)>& where = {}, const graph::Confine* confine = nullptr);

// The formats that a source makes, as the compiler asks for them. Throws Failure (MR0403) if it refuses.
std::vector<mr_format> formats_of_source(const graph::Handler& declared, const HandlerFacts& source);

// The types of a registry; conversions are live handlers of their own while the plan is made.
class LiveTypes final : public Types {
 public:
  LiveTypes(const plugin::Registry& registry, const mr_host& host, plugin::CallWatch* watch = nullptr)
      : registry_(registry), host_(host), watch_(watch) {}
  const plugin::HandlerInfo* converter(uint32_t role) const override;
  Answering answering(const graph::Handler& declared) const override;
  std::vector<const plugin::HandlerInfo*> all() const override;

 private:
  const plugin::Registry& registry_;
  const mr_host& host_;
  plugin::CallWatch* const watch_;
};

// Compiles for handlers that are live here, and makes those that the plan inserted. A later call makes these anew.
Plan compile(const graph::Graph& graph, Prepared& prepared, const plugin::Registry& registry, const mr_host& host,
             const Machine& machine, const Options& options);

// The declaration of a handler of the plan: from the graph, or from the plan if it inserted the handler.
const graph::Handler& declared_of(const Plan& plan, const graph::Graph& graph, uint32_t handler);

// Another instance of a handler with the formats that the plan settled: a lane of a stateless one.
std::unique_ptr<plugin::Instance> clone(const Plan& plan, const graph::Graph& graph, uint32_t handler,
                                        const plugin::RegisteredType& type, const mr_host& host,
                                        plugin::CallWatch* watch);

} // namespace millrace::plan
