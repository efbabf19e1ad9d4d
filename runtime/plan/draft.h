// The plan while it is made: the passes share this and each fills its part. Private to runtime/plan.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "plan/hops.h"
#include "plan/memory.h"
#include "plan/plan.h"

namespace millrace {
struct Error;
}
namespace millrace::plugin {
class Answers;
struct HandlerInfo;
} // namespace millrace::plugin

namespace millrace::plan {

struct Facts;
struct Machine;
struct Options;
class Types;

// A handler with its ports laid flat, as the ABI counts them.
struct DraftHandler {
  const graph::Handler* declared = nullptr;
  const plugin::HandlerInfo* info = nullptr;
  plugin::Answers* answers = nullptr;
  mr_facts facts{};
  const mr_format* accepts = nullptr; // per declared port: what it takes or makes with these parameters
  std::vector<uint32_t> edge_counts;  // per declared port: edges of an input; 1 for a connected output, else 0
  std::vector<uint32_t> first;        // per declared port: its first flat index among inputs or outputs
  uint32_t input_count = 0, output_count = 0;
  std::vector<uint32_t> input_port;  // flat input → declared port
  std::vector<uint32_t> output_port; // flat output → declared port
  std::vector<uint32_t> input_edge;  // flat input → draft edge, kNone if not connected
  std::vector<uint32_t> more_edges;  // in a group: edges that bring items of further streams
  std::vector<mr_format> inputs, outputs;
  uint32_t clock = kNone;
  uint32_t node = 0;        // index into Options::nodes
  uint32_t stage = 0;       // 0: in its clock's own pace, or decoupled from it; else in a far pace (stages.h)
  uint32_t base = kNone;    // later stages: the far pace that it is in, or that its gates are in
  uint32_t owed_after = 0;  // over several nodes: ticks that may be pending after it, on all of them together
  bool only_source = false; // the only one of its clock
  bool takes_items = false; // it is of a group: its clock's ticks are items of streams
  uint32_t domain = 0;
  std::string reason;
  uint32_t pace = kNone;
  uint32_t step = kNone;
  int64_t cost_ns = 0;
  bool is_refused = false; // it or an edge to it has a mistake that was kept: unconnected inputs are not reported
  bool is_source() const { return input_count == 0; }
};

struct DraftEdge {
  const graph::Edge* declared = nullptr;
  uint32_t source = 0, target = 0;              // handlers
  uint32_t source_output = 0, target_input = 0; // flat
  bool crosses_clocks = false;
  bool has_ports_policy = false; // `declared` has the policy of the reader's port (MR_PORT_NEWEST)
  // It carries the items of one stream into a group, or out of one, or from one to another: that stream, by its number
  // in its set, and the stream's clock. kNone: it carries none.
  uint32_t stream = kNone, stream_clock = kNone;
  bool enters = false, leaves = false;
};

// A conversion that negotiation asks for; the compile loop adds it to its copy of the graph and begins again.
struct Conversion {
  std::vector<size_t> edges; // indices into graph.edges: readers of one output that want the same
  std::string type;
  std::string wish; // part of its name: "rgb8", "upright", "square"
  std::vector<std::pair<std::string, std::string>> settings;
  std::string elsewhere; // the cost of another place, in words; empty: there is no other
};

struct Draft {
  const graph::Graph& graph;
  const Facts& facts;
  const Types& types;
  const Machine& machine;
  const Options& options;
  // By the name of a conversion that was inserted: the cost of another place, in words.
  std::map<std::string, std::string> elsewhere{};
  std::vector<graph::Clock> clocks{};     // as in the graph; one if it declares none
  std::vector<DraftHandler> handlers{};   // as in the graph
  std::vector<DraftEdge> edges{};         // as in the graph
  std::deque<graph::Edge> own_policies{}; // edges that have the policy of their reader's port
  std::vector<uint32_t> homes{};          // by clock: its node
  std::vector<uint32_t> order{};          // handlers, in an order in which every edge without delay points forwards
  std::vector<uint32_t> handler_output{}; // [handler] → its first output in plan.outputs
  Plan plan{};
  std::unordered_map<std::string_view, uint32_t> handler_named{}; // its index in the graph
  std::vector<Hop> hops{};                                        // between all domains of the plan, for find_hop
  // For choose_nodes(): the nodes that may run each handler, as domains name them; an empty list: any. Else empty.
  std::vector<std::vector<std::string>> nodes_of{};
  std::vector<Error>* kept = nullptr; // resolve() adds its mistakes here; null: it throws

  std::string port_name(uint32_t handler, bool input, uint32_t flat) const;
  // The clocks of the ticks on which the edge's value is made and read. The items of a stream are of its ticks.
  uint32_t clock_from(const DraftEdge& edge) const {
    return edge.leaves ? edge.stream_clock : handlers[edge.source].clock;
  }
  uint32_t clock_to(const DraftEdge& edge) const {
    return edge.enters ? edge.stream_clock : handlers[edge.target].clock;
  }
};

// Settles the formats of a graph, with the conversions that this takes, and calls `then` with the draft of all that.
// Its nodes and stages are known. Throws Failure.
void settle_formats(const graph::Graph& graph, const Facts& facts, const Types& types, const Machine& machine,
                    const Options& options, const std::function<void(Draft&)>& then);

// The passes, one per file.
void resolve(Draft& draft);                      // names → indices; cycles; what must be connected
void assign_clocks(Draft& draft);                // the clock of each handler; the clocks' modes
std::vector<Conversion> negotiate(Draft& draft); // formats; what must be converted
void place(Draft& draft);                        // domains
// For place(): true for a sink that may run in several domains and whose price is not known in all of them.
bool follows_inputs(const Draft& draft, uint32_t handler, const std::vector<uint32_t>& choices);
// For place(): true if the time of the handler's call is known, and not guessed, in all of these domains.
bool is_priced(const Draft& draft, uint32_t handler, const std::vector<uint32_t>& choices);
// For place(): places, all at once, the handlers whose price is known in every domain that they may run in.
void place_by_price(Draft& draft, const std::vector<std::vector<uint32_t>>& choices);
// For place(), last: puts each inserted conversion on the side of a boundary that makes fewer bytes cross it.
void place_conversions(Draft& draft, const std::vector<std::vector<uint32_t>>& choices);
void expand(Draft& draft);            // handlers and edge policies → paces, steps, slots
void find_hops(Draft& draft);         // for place(): the machine's hops between the plan's domains
void route(Draft& draft);             // transfers for edges that leave their domain
void plan_finish(Draft& draft);       // the inputs of the finish of GPU bodies
void share_buffers(Draft& draft);     // forwards and in-place
void pack(Draft& draft);              // small copies that go the same way
void partition(Draft& draft);         // segments and lanes
void break_copy_cycles(Draft& draft); // outputs that a copy cannot wait for when it asks which readers fire
void capture(Draft& draft);           // regions
bool capturable(const Plan& plan, const Step& step); // on its device, if its inputs allow it
void lay_out(Draft& draft);                          // windows, slots, rings, bytes
void schedule(Plan& plan);                           // workers

// An edge for which the pipeline says nothing gets the policy of its reader's port. An edge of a list over streams and
// one that carries items are read as their group reads them. For resolve().
void use_ports_policy(Draft& draft, DraftEdge& edge, uint32_t port_flags);
// Refuses a second owner of an object (MR0423), and a handler that joins an object without an owner on its node
// (MR0424). Looks at nothing as long as some handlers' types are not known here. With `kept`, adds all such mistakes.
void refuse_objects(const Draft& draft);
// Adds a note for each handler that does nothing, because no input is connected that it is for (MR_PORT_IDLE_WITHOUT).
void note_idle(Draft& draft);

// Fills Plan::inserted, once everything is known.
void describe_conversions(Draft& draft);

// "gray8, rgb8", for messages.
std::string describe_pixels(uint64_t bits);
// "uint8, float32" of a set of MR_DTYPES_*, "2 or 3 dimensions" of a set of ranks, for messages.
std::string describe_dtypes(uint32_t set);
std::string describe_ranks(uint32_t set);

// True if the segments of a pace were cut without knowing the costs of all its handlers, and may be cut again.
bool guesses(const Plan& plan, uint32_t pace);

// The window of a pace after its segments were cut again, as wide as its room allows.
uint32_t wider_window(const Plan& plan, uint32_t pace);

// An order of `count` nodes in which every edge points forwards, stable by index; shorter than count if there is a
// cycle.
std::vector<uint32_t> topological_order(uint32_t count, const std::vector<std::pair<uint32_t, uint32_t>>& edges);

// The direct hop from one domain of the plan to another. Between a host and its device it is a guess if the machine
// knows none. Null if there is none.
const Hop* find_hop(const Draft& draft, uint32_t from, uint32_t to);
// The cheapest ways for so many bytes.
CheapestRoutes ways_for(const Draft& draft, double bytes);

// True if the value of this output may be the empty value of an `initial:`, also by way of copies, forwards and other
// paces. Such a value has no block.
bool may_be_initial(const Plan& plan, uint32_t output);

// The time of a call in a domain. Only place() knows if the handler can run there at all.
struct Cost {
  double us = 0;      // 0: not known
  double late_us = 0; // time of a slow call (p99)
  bool sure = false;  // good enough for placement; else for cutting segments only
};
Cost cost_in(const Draft& draft, const DraftHandler& handler, uint32_t domain);

// A body whose time may have been measured: its handler's type and settings (settings_of()), and the domain's name.
struct Measured {
  std::string type, settings, domain;
};
// The time of one call with so many items, when the inputs hold so many bytes.
std::optional<Cost> measured_cost(const Machine& machine, const Measured& body, uint64_t bytes, uint32_t items);
// The time of a handler of a group for so many items of a firing.
double items_us(const Draft& draft, const DraftHandler& handler, uint32_t domain, uint32_t items);

// The most bytes that a copy of such a value moves, its mr_value included; 0 if unknown.
uint64_t copied_bytes(const mr_format& format);

} // namespace millrace::plan
