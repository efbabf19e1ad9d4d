// Makes a plan, its devices and a run from a declared graph, for the command and for runtime.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "embed/machine_file.h"
#include "embed/saved_plan.h"
#include "graph/graph.h"
#include "plan/choose_nodes.h"
#include "plan/domain.h"
#include "plan/machine.h"
#include "plan/prepare.h"
#include "plan/share_threads.h"

namespace millrace::device {
class Device;
class PinnedRanges;
} // namespace millrace::device
namespace millrace::exec {
class Run;
struct RunOptions;
} // namespace millrace::exec
namespace millrace::graph {
class Confine;
}
namespace millrace::plan {
struct MadeStream;
struct StreamToMake;
} // namespace millrace::plan
namespace millrace::plugin {
class CallWatch;
class Instance;
class Registry;
} // namespace millrace::plugin

namespace millrace::embed {

// The choices of a person that are not in the pipeline.
struct Choices {
  std::vector<std::string> domains = {"cpu"}; // devices that may be used, in order of preference
  uint32_t threads = 0;                       // 0: one for each core
  std::optional<graph::ClockMode> clock;      // overrides the pipeline's
  std::optional<graph::Rational> rate;
  bool probe = true;
  MachineFile machine;  // data about this machine and the simulated devices
  bool by_price = true; // false: handlers that are not pinned go to the first of `domains` that runs them
  SavedPlan saved;      // the plan must be made again as it was, with its domains and threads; text "": none
  std::string node; // handlers of other nodes are not probed, and may be of types that are not here; "": all are here
  bool elsewhere = false; // all handlers run elsewhere: what others told of them is put into the preparation
  std::string facts;      // JSON, used instead of probing the handlers that it names; "": none
  std::shared_ptr<const graph::Confine> confine; // the files of handlers have to be in its folder; null: anywhere
  std::vector<Error>* kept = nullptr;            // gets all mistakes, as prepare.h says; null: the first is thrown
  std::shared_ptr<plugin::CallWatch> watch;      // watches the handlers' calls; null: none are watched
};

// "cpu,sim:0" → its domains. Throws Failure: MR0105 if it cannot be read, MR0408 for a device that needs a module which
// is not there.
std::vector<std::string> parse_domains(const std::string& list);
// "realtime", "free", "source"; MR0105 else.
graph::ClockMode parse_clock_mode(const std::string& word);
// "30", "29.97", "30000/1001"; MR0105 else.
graph::Rational parse_rate(const std::string& text);

// Makes one device for each domain; `pinned` is their common list of pinned memory. Throws Failure (MR0701).
std::vector<std::unique_ptr<device::Device>> make_devices(const MachineFile& machine,
                                                          const std::vector<plan::Domain>& domains,
                                                          const std::shared_ptr<device::PinnedRanges>& pinned);

// A pipeline whose handlers are made and probed, and the machine that they may run on. A plan is compiled from this and
// from options. A node of a fleet offers it to the others first, and is told the options then. Not thread safe.
class Preparation {
 public:
  // Checks the pipeline, makes and probes its handlers, then finds the devices and their prices. `registry` and `host`
  // must outlive it and its composition. Throws Failure.
  Preparation(graph::Graph graph, const plugin::Registry& registry, const mr_host& host, const Choices& choices);
  Preparation(Preparation&&) noexcept;
  ~Preparation();

  // With an instance of each template for each stream.
  const graph::Graph& graph() const { return graph_; }
  // As it was written.
  const graph::Graph& written() const { return written_; }
  const plugin::Registry& registry() const { return *registry_; }
  // The answers to the compiler's questions about each handler. A node puts in those of other nodes' handlers.
  plan::Facts& facts() { return prepared_.facts; }
  const plan::Facts& facts() const { return prepared_.facts; }
  const plan::Machine& machine() const { return machine_; }
  // The options for running here alone: the clock, the rate and the saved places of the choices.
  const plan::Options& options() const { return options_; }
  // The same for one of the pipeline's nodes (graph::node_names), by its number.
  plan::Options options_of_node(uint32_t node) const;
  // Plans are for this machine from now on.
  void use_machine(plan::Machine machine) { machine_ = std::move(machine); }
  // Why handlers that name no node cannot run here, by name.
  const std::map<std::string, std::string>& unable() const { return prepared_.unable; }
  // The node of a handler that names none.
  void run_on(const std::string& handler, const std::string& node);
  // As plan/choose_nodes.h has it, for this graph and its facts.
  plan::ChosenNodes choose_nodes(const plan::Machine& joined, const plan::Options& options,
                                 const plan::OfferedNodes& offered) const;
  // The plan that these options make. Throws Failure.
  plan::Plan compile(const plan::Options& options);

 private:
  friend class Composition;

  const plugin::Registry* registry_;
  const mr_host* host_;
  MachineFile machine_file_;
  SavedPlan saved_;
  std::shared_ptr<plugin::CallWatch> watch_;
  std::shared_ptr<const graph::Confine> confine_;
  graph::Graph written_, graph_;
  plan::SharedThreads threads_;
  plan::Prepared prepared_;
  plan::Machine machine_;
  plan::Options options_;
};

// A compiled pipeline, with everything that its plan and its run refer to. Not thread safe. It runs only once, because
// handlers keep state.
class Composition {
 public:
  // Prepares, and compiles with the preparation's own options. Throws Failure.
  Composition(graph::Graph graph, const plugin::Registry& registry, const mr_host& host, const Choices& choices);
  // Compiles, and takes the preparation over. Throws Failure, also if the choices had a saved plan and these options
  // make another one; then the preparation is kept, and other options may be tried.
  Composition(Preparation&& preparation, const plan::Options& options);
  ~Composition();

  const plan::Plan& plan() const;
  const graph::Graph& graph() const;
  // The declaration of a handler of the plan, also of one that the plan inserted.
  const graph::Handler& declared_of(uint32_t handler) const;
  plugin::Instance* find(const std::string& handler) const; // null if there is none

  // The handlers of a stream that comes while it runs (plan::make_stream). Any thread.
  plan::MadeStream make_stream(const plan::StreamToMake& wanted) const;
  // The stream of the pipeline whose clock that is.
  const graph::Stream& stream_of(uint32_t clock) const;

  // Makes the devices and the run, which must be destroyed before this. Throws Failure (MR0701).
  std::unique_ptr<exec::Run> make_run(const exec::RunOptions& options);

  // True if a device was lost while work on it was under way (exec::Run::is_stuck). Such a composition never destroys
  // its parts, and its registry must not be destroyed either.
  bool is_stuck() const;

 private:
  struct Parts; // the run refers to them by address
  std::unique_ptr<Parts> parts_;
};

} // namespace millrace::embed
