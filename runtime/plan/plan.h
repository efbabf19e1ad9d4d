// The compiled graph: what runs, in which order, where, and in which memory.
//
// Problem. A declared graph says what depends on what. To run it without locks, allocations or decisions on the hot
// path, everything else must be known before the first tick: which handlers step together, what a tick waits for,
// how many ticks are in flight, how long each value lives, and which bytes cross which boundary.
//
// Why this way. The plan knows one kind of thing that runs, the *step*, and one kind of thing that steps share, the
// *slot*: the place of one output's value for one tick. Handlers are steps; so is every copy that crosses a boundary
// and every edge policy: a `latest` edge is a step that resolves it into a slot of the reader's own tick, and a gate
// lets ticks into a `queue` or a decoupled reader. So a handler only ever reads slots of its own tick (or k ticks
// before it, by `delay`), and all rules about time are in a handful of steps (semantics.md 1 and 2).
//
//   pace      a set of steps that advance together, with dense ordinals of their own: one for each clock, and one for
//             each decoupled group of handlers (1.6), whose ordinals count the ticks that its gate let in
//   segment   steps of one pace and one domain that one worker runs one after another; lanes are copies of a segment
//             whose handler is stateless: lane j of L takes the ordinals n ≡ j (mod L)
//   channel   a bounded queue between two paces, fed by a gate or a post step
//
// Invariants.
//  - Within a pace, inputs without delay come from steps earlier in `order`: no tick can wait for itself.
//  - window ≥ 1 + the longest pending; slot rings cover window + the largest delay; block rings cover every holder
//  (3.2).
//  - A plan is immutable and pure: the same graph, facts, machine and costs give the same plan.
//  - A plan is data alone: indices and texts, no pointer to a handler, a registry or the graph. It can be compared,
//    written as JSON and read again, as tests do.
//
// Limits. It holds no memory, thread or handler; exec/ makes those from it.
//
// Beside this file: compile.h makes a plan of a graph, facts.h (what handlers say of themselves) and machine.h;
// explained.h has what a plan tells a person alone, print.h prints it, and partition.h cuts its segments again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/enums.h"
#include "millrace/abi.h"
#include "plan/none.h"

namespace millrace::plugin {
struct HandlerInfo;
struct RecordType;
} // namespace millrace::plugin

namespace millrace::plan {

// domain.h
struct Domain;
// pace.h
struct Clock;
struct Pace;
struct Channel;
struct Segment;
struct Region;
// step.h
struct Step;
// memory.h
struct Output;
struct Ring;
// group_plan.h
struct GroupPlan;
// explained.h
struct TransferPlan;
struct AccessPlan;
struct InsertedPlan;

struct HandlerPlan {
  std::string name, type;
  std::string written_as, stream, for_each; // as in graph::Handler: an instance's template, stream and set; else ""
  uint32_t info = 0;                        // index into Plan::types
  mr_facts facts{};                         // as it said when it was probed
  uint32_t step = kNone;
  uint32_t domain = 0;
  uint32_t clock = 0;
  uint32_t node = 0; // index into Plan::nodes
  uint32_t every = 1;
  uint32_t gap = 0; // ticks without a firing that it is planned for while it owes one
  uint32_t lanes = 1;
  graph::OnError on_error = graph::OnError::fail;
  int64_t budget_ns = 0;
  int64_t cost_ns = 0;               // expected time of one call; 0: not known
  bool waits = false;                // its calls wait for the world: a blocking handler, or a source that says so
  std::string reason;                // why it runs in this domain
  std::vector<uint32_t> edge_counts; // per declared port: edges of an input; 1 for a connected output, else 0
  std::vector<uint32_t> first_entry; // per declared port: its first flat index
};

// An edge as the report names it.
struct EdgePlan {
  std::string from, to; // "video.video", "boxes.video"
  graph::Policy policy = graph::Policy::sync;
  uint32_t delay = 0;
  uint32_t source_output = kNone; // output of the producing handler
  uint32_t target_step = kNone;
  uint32_t target_input = 0; // flat
  std::string note;          // "drop_oldest acts as block under free", …
};

// A channel whose other end is on another node: its ticks are parcels of a link.
struct CrossingPlan {
  std::string name;          // the same on both nodes: "main/0>2" is from pace 0 to pace 2
  std::string node;          // the other one
  uint32_t channel = 0;      // the end here
  bool departs = false;      // ticks leave here; else they arrive
  uint32_t from = 0, to = 0; // paces
  // While the link is down or the other node is away: `live` ticks are left out, `reliable` ones wait for a while (7.8,
  // 7.9). Never automatic.
  graph::Delivery delivery = graph::Delivery::reliable;
};

struct Plan {
  Plan();
  ~Plan();
  Plan(const Plan&);
  Plan(Plan&&) noexcept;
  Plan& operator=(const Plan&);
  Plan& operator=(Plan&&) noexcept;

  std::string name;
  std::vector<std::string> nodes; // Options::nodes, in their order
  uint32_t node = 0;              // the node that it is for: Options::node
  std::vector<Domain> domains;    // as the machine has them
  std::vector<plugin::HandlerInfo> types;
  std::vector<HandlerPlan> handlers; // those of the graph, then those that were inserted
  std::vector<EdgePlan> edges;
  std::vector<Clock> clocks;
  std::vector<Pace> paces;
  std::vector<Step> steps; // in an order that respects every edge without delay
  std::vector<Output> outputs;
  std::vector<std::shared_ptr<const plugin::RecordType>> records; // those that formats of outputs point to
  std::vector<Ring> rings;
  std::vector<Channel> channels;
  std::vector<CrossingPlan> crossings;
  std::vector<GroupPlan> groups;
  std::vector<Segment> segments;
  std::vector<Region> regions;
  std::vector<TransferPlan> transfers;
  std::vector<AccessPlan> accesses;
  std::vector<InsertedPlan> inserted;
  std::vector<std::string> notes;         // for the reader of a plan: "drop_oldest acts as block under free"
  std::vector<std::string> said;          // by handlers while it was made: "net: its calls take one tensor"
  std::map<std::string, uint64_t> memory; // bytes by domain
  uint32_t workers = 1;                   // threads for segments without one of their own
  uint32_t threads = 1;                   // workers + named + blocking
  uint32_t library_threads = 0;           // others, which handlers' libraries start
  double latency_us = 0;                  // predicted; 0: not known
  bool guessed = false; // segments were cut without knowing what all handlers cost: the run cuts them once more

  // on_host() is true if host threads run the steps of this domain, in_host_memory() if host threads may touch its
  // bytes.
  bool on_host(uint32_t domain) const;
  bool in_host_memory(uint32_t domain) const;
  bool is_over_nodes() const { return nodes.size() > 1; }
  // The node whose sources give this clock's ticks. The first paces are those of the clocks.
  uint32_t home_of(uint32_t clock) const;
  // True if the media times of two clocks come from the clocks of two machines: they are compared only as well as these
  // agree. The times of clocks that wait come from files, and are exact.
  bool are_timed_separately(uint32_t a, uint32_t b) const;
  const plugin::HandlerInfo& type_of(const HandlerPlan& handler) const;
  const plugin::HandlerInfo& type_of(const Step& step) const;
};

} // namespace millrace::plan
