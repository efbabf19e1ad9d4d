// The compiled graph: what runs, in which order, where, and in which memory.
//
// Problem. A declared graph says what depends on what. To run it without locks, allocations or decisions on the hot
// path, everything else must be known before the first tick: which handlers step together, what a tick waits for,
// how many ticks are in flight, how long each value lives, and which bytes cross which boundary.
//
// Why this way. The plan knows one kind of thing that runs, the *step*, and one kind of thing that steps share, the
// *slot*: the place of one output's value for one tick. Handlers are steps; so is every copy that crosses a boundary
// and every edge policy: a `latest` edge is a step that resolves it into a slot of the reader's own tick, a `queue`
// or a reader that works behind begins at a gate. So a handler only ever reads slots of its own tick (or k ticks
// before it, by `delay`), and all rules about time sit in a handful of steps (semantics.md 1 and 2).
//
//   pace      a set of steps that advance together, with dense ordinals of their own: one for each clock, and one for
//             each group of handlers that works behind (1.6), whose ordinals count what its gate let through
//   segment   steps of one pace and one domain that one worker runs one after another; lanes are copies of a segment
//             whose handler is stateless: lane j of L takes the ordinals n ≡ j (mod L)
//   channel   a bounded queue between two paces, fed by a gate or a post step
//
// Invariants.
//  - Within a pace, inputs without delay come from steps earlier in `order`: no tick can wait for itself.
//  - window ≥ 1 + the longest pending; slot rings cover window + the largest delay; block rings cover every holder
//  (3.2).
//  - A plan is immutable and pure: the same graph, facts, machine and costs give the same plan.
//
// What it is not. It holds no memory, thread or handler; exec/ makes those from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "millrace/abi.h"
#include "plan/domain.h"
#include "plan/hops.h"
#include "plugin/registry.h"

namespace millrace::plan {

inline constexpr uint32_t kNone = UINT32_MAX;

// The widest window that is chosen without being asked for (semantics.md 1.5).
inline constexpr uint32_t kInFlightMax = 4;
// Without any rate media time counts this many ticks a second.
inline constexpr int64_t kNominalRate = 30;
// Values that a blocking source may be ahead of its clock.
inline constexpr uint32_t kReadAhead = 2;

enum class StepKind {
  source,   // a handler without inputs; the head of its clock runs it
  handler,  // a handler
  finish,   // calls finish() of a handler whose body enqueued, once its device is done with the tick
  transfer, // copies one output's buffer to another domain
  entry,    // the values that a gate let into a pace that works behind
  gate,     // lets ticks into such a pace, and counts what it turns away
  post,     // puts an output's values into a channel to another pace, or to a `latest` reader
  resolve,  // takes from a channel what the edge's policy says, once for all readers of a tick
};

// How a step input is read.
struct StepInput {
  uint32_t output = kNone; // index into Plan::outputs; kNone: not connected
  uint32_t delay = 0;      // ticks before this one
  uint32_t edge = kNone;   // index into Plan::edges
  bool required = true;
  bool initial_empty = false; // before the first value: a value of extent 0
  bool repeat_last = false;   // a required delayed input repeats the last value where the slot is empty (2.3)
  uint32_t keeps = 0;         // past values that stay valid
  bool calls = false;         // sync or queue: a value of this tick, for Step::on_value
};

struct Step {
  StepKind kind = StepKind::handler;
  std::string name;         // the handler's; of a runtime step a description: "copy video → sim:0"
  uint32_t handler = kNone; // index into Plan::handlers
  uint32_t pace = 0;
  uint32_t segment = kNone;      // the first of its lanes
  uint32_t domain = 0;           // index into Plan::domains
  std::vector<StepInput> inputs; // handlers: flat, as the ABI counts them
  std::vector<uint32_t> outputs; // indices into Plan::outputs; of a handler flat, as the ABI counts them
  std::vector<uint32_t> after; // steps that must have settled the same tick before: readers of what is written in place
  uint32_t channel = kNone;    // gate, entry, post, resolve
  uint32_t every = 1;          // fires on ticks whose index is a multiple
  uint32_t owes = 0;           // handler: ticks of its pace for which it may owe a firing: its pending ones and its gap
  bool on_value = false;       // reads a queue and requires nothing: fires where an input that `calls` has a value
  uint32_t level = 0;          // the sum of max_pending before it: steps of one segment share it
  uint32_t settled_level() const { return level + owes; } // when the last result that it may owe is there
  uint32_t region = kNone;                                // captured with others: index into Plan::regions
  uint64_t scratch_bytes = 0;                             // device memory that its GPU body works in
  // finish: the step of the body. Its inputs are what that reads and then what it makes; its outputs pass on what of
  // that lies on the host.
  uint32_t finishes = kNone;
  std::vector<uint32_t> readers; // transfer: the steps whose firing makes the copy certain
  std::vector<uint32_t> members; // transfer of several outputs: which of its inputs each of `readers` reads
  // transfer: outputs that its readers need as well and that come behind it: to wait for those would be for ever, so
  // they are taken to have a value.
  std::vector<uint32_t> presumed;
};

// One output of a step: a slot for each tick in flight.
struct Output {
  uint32_t step = 0;
  uint32_t port = 0;       // flat index within the step
  std::string name;        // "video", for reports
  uint32_t domain = 0;     // where its bytes are
  mr_format format{};      // capacity, not extent
  uint32_t origin = kNone; // entry, resolve: the output whose buffers pass through
  uint32_t pack = kNone;   // its blocks lie beside those of others of this pack, so that one copy moves them
  uint32_t ring = kNone;   // its blocks; an output that forwards or writes in place shares its input's
  uint32_t retain = 0;     // ticks that a value outlives its own, by `delay`
  int32_t forwards = -1;   // step input whose buffer it may repeat
  int32_t in_place = -1;   // step input whose buffer it is written over
  bool owns = true;        // has a ring of its own
  bool connected = false;
};

// Blocks of one output, in one domain.
struct Ring {
  uint32_t output = 0;
  uint32_t domain = 0;
  uint32_t length = 1;
  bool dynamic = false;
  uint64_t capacity = 0;
  bool pinned = false;
  uint32_t pack = kNone; // rings of one pack and domain lie block beside block, so that one copy moves all of a tick
  std::vector<std::string> reasons; // "3 in flight", "1 held by latest", …: the annotated sum
};

enum class PaceKind { clock, behind };

struct Pace {
  PaceKind kind = PaceKind::clock;
  uint32_t clock = 0;              // index into Plan::clocks
  uint32_t parent = kNone;         // behind: the pace of its gate
  uint32_t gate = kNone;           // behind: step
  uint32_t entry = kNone;          // behind: step
  uint32_t window = 1;             // ordinals in flight
  uint32_t room = 1;               // what memory is laid out for: the window may grow so far when the cut is made again
  uint32_t gap = 1;                // ticks that a handler may owe a firing beyond Step::owes before it is drained
  uint32_t slots = 1;              // slots an output, a power of two ≥ window + retain
  std::vector<uint32_t> sources;   // clock: steps, in order
  bool generated = false;          // a source of it runs on a device, where nobody asks it
  uint64_t ticks_max = UINT64_MAX; // that source gives so many: then the clock ends
};

struct Clock {
  std::string name;
  graph::ClockMode mode = graph::ClockMode::free; // never automatic
  graph::Rational rate;                           // 0: none
  bool live = false;                              // a live source paces it: realtime's rules of lateness
  uint32_t driver = kNone;                        // mode source: the step that creates the ticks
  uint32_t in_flight = 1;
  uint32_t in_flight_least = 0; // 0: in_flight stays as it is; else it may be lowered so far where memory is short
  uint32_t pending = 0;         // the largest sum of max_pending on a path
  // Where clocks wait for each other in a circle (8.3): media time for which one of its ticks may be held meanwhile;
  // how many of its ticks are in flight at least for that; how many it may owe to the others; how many ticks are never
  // within less than `held_ns`, or the run fails.
  int64_t held_ns = 0;
  uint32_t held_ticks = 0, owed_ticks = 0, crowd_ticks = 0;
  std::vector<uint32_t> leaders; // of one without sources: clocks with sources that edges lead from (8.11)
  // Realtime rules: latest is the newest that is done, drops happen. Else everything is waited for (2.5).
  bool realtime() const { return mode == graph::ClockMode::realtime || live; }
  // A file never changes speed (1.4): under `free` with a rate that is not the source's own, a tick takes the newest
  // value that is due by its media time, waited for, and none where none is.
  bool takes_what_is_due(const mr_facts& source) const {
    const bool rates = mode == graph::ClockMode::free && rate.numerator > 0 && source.rate_num > 0;
    return rates && rate.numerator * source.rate_den != source.rate_num * rate.denominator;
  }
};

enum class ChannelKind { gate, latest, queue, align };

struct Channel {
  ChannelKind kind = ChannelKind::latest;
  uint32_t from = kNone; // post or gate step
  uint32_t to = kNone;   // resolve or entry step
  uint32_t depth = 1;    // values that may wait
  uint32_t capacity = 1; // entries the ring holds
  graph::Full full = graph::Full::block;
  bool busy = false;       // gate of a reader that works behind without a queue: one tick, cause `busy`
  bool queued = false;     // gate fed by a queue edge
  bool on_firing = false;  // gate that lets in the ticks on which all its values are there, without a limit of its own
  bool every_tick = false; // gate that ticks without any value pass too: somebody behind it fires on them
  uint32_t lag = 0;
  int64_t within_ns = 0;
  bool same_clock = true;
  bool initial_empty = false;
  std::vector<uint32_t> edges;   // whose drops are counted here
  std::vector<uint32_t> entries; // by edge: which value of an entry is its own; of others than gates there is one
};

struct Segment {
  uint32_t pace = 0;
  uint32_t domain = 0;
  uint32_t lane = 0, lanes = 1;
  uint32_t home = 0;   // worker
  bool pinned = false; // only its home runs it: devices, named threads, blocking handlers
  bool blocking = false;
  bool heavy = false;          // a GPU body in it keeps the host busy: a thread of its own submits it
  std::string thread;          // named thread; "" for the workers
  std::vector<uint32_t> steps; // in order
};

// Device handlers that are recorded once per ring slot and replayed as one.
struct Region {
  uint32_t domain = 0;
  uint32_t slots = 1;          // one ring length for all it touches
  std::vector<uint32_t> steps; // handlers; then, on a real device, the small copies down that are recorded with them
};

struct HandlerPlan {
  std::string name, type;
  const plugin::HandlerInfo* info = nullptr;
  uint32_t step = kNone;
  uint32_t domain = 0;
  uint32_t clock = 0;
  uint32_t every = 1;
  uint32_t gap = 0; // ticks without a firing that it is planned for while it owes one
  uint32_t lanes = 1;
  graph::OnError on_error = graph::OnError::fail;
  int64_t budget_ns = 0;
  int64_t cost_ns = 0;               // expected time of one call; 0: not known
  bool waits = false;                // its calls wait for the world: a blocking handler, or a source that says so
  std::string reason;                // why it runs where it runs
  std::vector<uint32_t> edge_counts; // per declared port
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

// A copy across a boundary, as `plan` prints it.
struct TransferPlan {
  uint32_t step = 0;
  std::vector<uint32_t> edges;
  std::vector<std::string> route; // domains
  uint64_t bytes = 0;
  double predicted_us = 0;
  double apart_us = 0;  // several outputs in one: what their copies would take one by one
  bool guessed = false; // the hop was not measured
  std::string reason;
};

// What a device reads where it is instead of copying it (semantics.md 3.6).
struct AccessPlan {
  uint32_t step = 0, input = 0; // the reader
  uint32_t edge = kNone;
  uint32_t domain = 0; // where the bytes are
  uint64_t bytes = 0;
  double predicted_us = 0;
  double copy_us = 0; // what a copy for all readers of that domain would have taken
};

// A conversion that negotiation added to the graph.
struct InsertedPlan {
  uint32_t handler = 0;             // index into Plan::handlers
  std::string from, to;             // pixel formats: "bgr8", "rgb8"; sizes of what is turned or scaled: "64×48"
  std::string source;               // "video.video"
  std::vector<std::string> readers; // "boxes.video", …
  std::string reason;               // "boxes takes rgb8"
  double predicted_us = 0;          // a call; 0: not known
  uint32_t width = 0, height = 0;
  uint64_t bytes = 0; // of the picture that it makes
};

struct Plan {
  std::string name;
  std::vector<Domain> domains; // as the machine has them
  std::vector<HandlerPlan> handlers;
  std::vector<EdgePlan> edges;
  std::vector<Clock> clocks;
  std::vector<Pace> paces;
  std::vector<Step> steps; // in an order that respects every edge without delay
  std::vector<Output> outputs;
  std::vector<Ring> rings;
  std::vector<Channel> channels;
  std::vector<Segment> segments;
  std::vector<Region> regions;
  std::vector<TransferPlan> transfers;
  std::vector<AccessPlan> accesses;
  std::vector<InsertedPlan> inserted;
  std::vector<std::string> notes;         // what a reader should know: "drop_oldest acts as block under free"
  std::map<std::string, uint64_t> memory; // bytes by domain
  uint32_t workers = 1;                   // threads for segments without one of their own
  uint32_t threads = 1;                   // workers + named + blocking
  double latency_us = 0;                  // predicted; 0: not known
  bool guessed = false; // segments were cut without knowing what all handlers cost: the run cuts them once more

  // Whether a thread of the host runs what is in this domain, and whether its bytes are the host's to touch.
  bool on_host(uint32_t domain) const { return domains[domain].is_host(); }
  bool in_host_memory(uint32_t domain) const { return domains[domain].host_memory; }
};

// ---- what compile needs ------------------------------------------------------------------------------------------

// A handler that was made, given its parameters and asked for facts.
struct Prepared {
  std::string name;
  std::unique_ptr<plugin::Instance> instance;
  mr_facts facts{};
  std::vector<mr_format> outputs; // flat; given from outside, then the handler is not asked for them
  std::vector<mr_format> accepts; // by port: as declared, narrowed by the parameters
};

// The graph with live handlers. The order is the graph's.
struct Facts {
  std::vector<Prepared> handlers;
  bool probed = true;
  plugin::CallWatch* watch = nullptr; // of the handlers' calls
};

// What a call of a handler takes in a domain, as it was measured there.
struct BodyCost {
  std::string type, settings; // its parameters as declared, sorted: "radius=3 sigma=2"
  std::string domain;
  uint64_t bytes = 0; // that its inputs hold at most; of a source its outputs
  double mean_us = 0, p50_us = 0, p99_us = 0;
  uint64_t calls = 0; // that were measured
};

// What a device takes on each tick beside the time of its bodies and of the bytes that are copied.
struct LaunchCost {
  std::string domain;
  double region_us = 0; // of each region: its launch, its tick's numbers, its signal
  double copy_us = 0;   // of each copy: what waits for it and is waited for, and submitting it
};

struct Machine {
  uint32_t workers = 1;               // threads to plan for
  std::vector<Domain> domains = {{}}; // its host, then its devices
  std::vector<uint32_t> order = {0};  // of those: where handlers run that are not pinned, in order of preference
  std::vector<Hop> hops;              // between a host and its devices, a missing one is guessed
  std::vector<BodyCost> bodies;
  std::vector<LaunchCost> launches; // where bodies are enqueued, a missing one is guessed; elsewhere it is nothing

  // Sets `domains` and `order`. A host that is not among the `preferred` is there for what runs nowhere else.
  void use(const std::vector<Domain>& preferred) {
    domains = with_host(preferred);
    order.clear();
    for (const Domain& domain : preferred) order.push_back(*find_domain(domains, domain.name));
  }
};

struct Options {
  std::optional<graph::ClockMode> clock; // overrides the file
  std::optional<graph::Rational> rate;
  std::map<std::string, int64_t>
      costs_ns; // by handler, measured or declared: where it runs, and for placing it, on the host
  std::map<std::string, std::string> places; // by handler: a domain, as in a plan that was saved
  bool by_price = true;                      // else handlers that are not pinned go to the first domain that runs them
};

// Makes the instances of a graph: looks types up, checks and sets parameters, binds ports, probes.
// Throws Failure (MR0304, MR0310…, MR0604). Conversions that the plan inserts are made by compile through the same
// host.
// `watch` is told of the handlers' calls and outlives them; null: nobody is.
// With `kept`, mistakes that do not follow from each other are added to it, and then MistakesKept is thrown: all of
// names, parameters and edges, and where there are none, all sources that cannot be opened.
Facts prepare(graph::Graph& graph, const plugin::Registry& registry, const mr_host& host, bool probe = true,
              plugin::CallWatch* watch = nullptr, std::vector<Error>* kept = nullptr);

// The passes, in order. Throws Failure, MR03xx and MR04xx. `graph` gains the conversions that were inserted.
Plan compile(graph::Graph& graph, Facts& facts, const plugin::Registry& registry, const mr_host& host,
             const Machine& machine, const Options& options);

// The segments of a plan cut once more, now that handlers were measured (semantics.md 5.2): `costs_ns` by handler, 0
// where there is none. Segments that may not move (moves()) stay as they are, and so do the homes of those that are
// pinned; windows grow as far as their room goes.
struct Cut {
  std::vector<Segment> segments;
  std::vector<uint32_t> windows; // by pace
};
Cut cut_again(const Plan& plan, const std::vector<int64_t>& costs_ns);
// Whether another cut may change this segment: one of the host's workers runs it, and it stands before everything that
// answers later, so that between two ticks nothing of it is under way.
bool moves(const Plan& plan, const Segment& segment);

// Another instance of a prepared handler, configured the same: a lane of a stateless one.
std::unique_ptr<plugin::Instance> clone(const graph::Handler& declared, const plugin::HandlerInfo& info,
                                        const HandlerPlan& plan, const mr_host& host, plugin::CallWatch* watch);

// By which a measurement of a handler's body is found again, beside type and domain: its settings, and how many bytes
// its inputs hold at most (of a source its outputs).
std::string settings_of(const graph::Handler& declared);
uint64_t bytes_read(const Plan& plan, uint32_t handler);

// What `millrace plan` prints.
std::string print_text(const Plan& plan);
std::string print_json(const Plan& plan);
std::string print_dot(const Plan& plan);

} // namespace millrace::plan
