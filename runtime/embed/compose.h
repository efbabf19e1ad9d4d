// From a declared graph to a plan and the devices that it runs on: what the command and runtime.h have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/pinned_ranges.h"
#include "embed/machine_file.h"
#include "embed/saved_plan.h"
#include "exec/run.h"
#include "graph/graph.h"
#include "plan/prepare.h"
#include "plugin/registry.h"

namespace millrace::embed {

// What a person chooses beside the pipeline.
struct Choices {
  std::vector<std::string> domains = {"cpu"}; // what may be used, in order of preference
  uint32_t threads = 0;                       // 0: as many as the process has cores
  std::optional<graph::ClockMode> clock;      // overrides the pipeline's
  std::optional<graph::Rational> rate;
  bool probe = true;
  MachineFile machine;                // what is known of this machine and of simulated devices
  bool by_price = true;               // else handlers that are not pinned go to the first of `domains` that runs them
  SavedPlan saved;                    // to be made again, with its domains and threads; text "": none
  std::string facts;                  // JSON, used instead of probing the handlers that it names; "": none
  std::vector<Error>* kept = nullptr; // gets all mistakes, as prepare() of plan.h says; null: the first is thrown
  std::shared_ptr<plugin::CallWatch> watch; // is told of the handlers' calls; null: nobody is
};

// "cpu,sim:0" → its domains. Throws Failure: MR0105 where it cannot be read, MR0408 for a device that needs a module
// which is not there.
std::vector<std::string> parse_domains(const std::string& list);
// "realtime", "free", "source"; MR0105 else.
graph::ClockMode parse_clock_mode(const std::string& word);
// "30", "29.97", "30000/1001"; MR0105 else.
graph::Rational parse_rate(const std::string& text);

// Where plugins are looked for without being told: beside the program, where `cmake --install` puts them, and in the
// folders of MILLRACE_PLUGIN_PATH, in this order.
std::vector<std::string> standard_plugin_folders();

// One for each domain; `pinned` is their list of pinned memory.
std::vector<std::unique_ptr<device::Device>> make_devices(const MachineFile& machine,
                                                          const std::vector<plan::Domain>& domains,
                                                          const std::shared_ptr<device::PinnedRanges>& pinned);

// A compiled pipeline and all that its plan and its run refer to. Not thread safe. Runs once: handlers keep state.
class Composition {
 public:
  // Makes the handlers, probes, compiles. `registry` and `host` must outlive it. Throws Failure.
  Composition(graph::Graph graph, const plugin::Registry& registry, const mr_host& host, const Choices& choices);
  ~Composition();

  const plan::Plan& plan() const { return parts_->plan; }
  // What was declared of a handler of the plan, also of one that the plan inserted.
  const graph::Handler& declared_of(uint32_t handler) const {
    return plan::declared_of(parts_->plan, parts_->graph, handler);
  }
  plugin::Instance* find(const std::string& handler) const; // null where there is none

  // Makes the devices and the run, which must die before this. Throws Failure (MR0701).
  std::unique_ptr<exec::Run> make_run(const exec::RunOptions& options);

  // True if a device was lost while work on it was under way (exec::Run::is_stuck). Such a composition never destroys
  // its parts, and its registry must not be destroyed either.
  bool is_stuck() const;

 private:
  // Found by the run at their addresses.
  struct Parts {
    MachineFile machine;
    std::shared_ptr<plugin::CallWatch> watch;
    graph::Graph graph;
    plan::Prepared prepared;
    plan::Plan plan;
    std::shared_ptr<device::PinnedRanges> pinned;
    std::vector<std::unique_ptr<device::Device>> devices; // by domain of the plan
    ~Parts();                                             // the host's memory last: devices copy into it
  };
  std::unique_ptr<Parts> parts_;
};

} // namespace millrace::embed
