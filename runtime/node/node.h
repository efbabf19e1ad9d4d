// One node of a pipeline that several processes run together: it meets the other nodes over secure links, makes its
// part of the plan, and runs it with them from one start to one end.
//
//   main thread     compiles, makes the run, waits for its end        <- tasks -
//   link's thread   sessions, fleet::Member, fleet::Coordinator       - post ->
//
// The node that the pipeline names first coordinates, and is a member like the others. What is said is decided in
// fleet/, and carried by net/; here both are joined to a run.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "embed/compose.h"
#include "exec/param_change.h"
#include "net/system/endpoint.h"
#include "node/change_words.h"
#include "node/documents.h"
#include "node/fleet_look.h"

namespace millrace::exec {
class Run;
struct RunOptions;
} // namespace millrace::exec

namespace millrace::node {

struct NodeOptions {
  std::string name;                       // as the pipeline has it
  std::vector<net::Endpoint> listen;      // empty: the address in the pipeline, or any at the default port
  std::vector<net::Endpoint> coordinator; // instead of the addresses that are known; empty: those
  int64_t patience_ns = 30'000'000'000;   // for a node that is away while others wait for it
  int64_t wait_ns = INT64_MAX;            // for nodes that are missing before the start
  std::filesystem::path folder;           // key.pem and peers.txt are there
  std::string program;                    // version of this program
  Decided decided;                        // by the coordinator
};

// All are called by the thread that calls run(), but `tell`.
struct NodeHooks {
  // Makes and probes the handlers of this node. Called again if another node begins again before the start.
  std::function<embed::Preparation()> prepare;
  std::function<exec::RunOptions()> run_options;
  // The part of this node is compiled; Failure refuses it. It lasts as long as the run that is made of it.
  std::function<void(const embed::Composition&)> composed;
  // The run is there, and has started its handlers; null: it is given up. The second time, another one is there.
  std::function<void(const std::shared_ptr<exec::Run>&)> running;
  // A line for a person. Any thread. `warn`: one that is to be read also by who wants no notes.
  std::function<void(const std::string&)> tell, warn;
};

struct NodeResult {
  Result result; // its part's; the error is that of the whole run
  // On the coordinator: those of the other nodes, JSON by name. Traces if they were decided.
  std::map<std::string, std::string> reports, traces;
  bool has_run = false;
};

class Node {
 public:
  // Listens from now on. Throws Failure: MR0815 to MR0817 as the links do, MR0807 for a node of the pipeline that is
  // not known here, MR0105 for options that do not fit the pipeline. `graph` is the pipeline after all --set, and has
  // the node.
  Node(const graph::Graph& graph, const NodeOptions& options, const NodeHooks& hooks);
  ~Node();

  // Runs the node to the end of the whole run. Throws Failure if the run could not begin.
  NodeResult run();
  // Changes live parameters of handlers on any node: each is asked of the node that begins the ticks of its clock,
  // which may be this one. `run` is the one of NodeHooks::running. All are checked before any is asked. Throws Failure
  // as exec::Run::set() does. `answered` is called once, by any thread, so it must not wait; never, if the run ends
  // before. Any thread.
  using ChangesAnswered = std::function<void(const ChangesAnswer&)>;
  void set(const std::shared_ptr<exec::Run>& run, const std::vector<exec::ParamChange>& changes,
           const ChangesAnswered& answered);
  // Any thread. On the coordinator: sources end, and with them the run of all. Elsewhere this node leaves.
  void stop();
  // The other nodes hear that this one leaves: its process ends now. Any thread.
  void leave_at_once();
  // The links to the other nodes, and all of the fleet, as they were a moment ago. Any thread.
  std::vector<LinkReport> links() const;
  FleetLook look_around() const;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

} // namespace millrace::node
