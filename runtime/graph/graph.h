// The graph as a person declared it, from a pipeline file, a one-line string or code: nothing resolved, nothing
// defaulted beyond what the text says. The plan starts from this and never changes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/enums.h"
#include "observe/place.h"

namespace millrace {
struct Error;
}

namespace millrace::graph {

// One connection, from one output to one entry of one input.
struct Edge {
  std::string source, source_port; // port "" means the handler's only output
  std::string target, target_port; // port "" means the handler's only (or only required) input
  uint32_t target_index = 0;       // position in an input that takes a list
  Policy policy = Policy::sync;
  bool has_policy = false;    // the pipeline says so; else the port that reads may have a policy of its own
  uint32_t lag = 0;           // latest: ticks
  uint32_t depth = 1;         // queue: values
  Full full = Full::block;    // queue
  int64_t within_ns = 0;      // align
  uint32_t delay = 0;         // ticks
  uint32_t gap = 0;           // how many ticks may pass without a value while the reader owes a result
  bool initial_empty = false; // `initial: empty`: a value of extent 0 before the first
  bool forbid_copy = false, forbid_convert = false;
  Delivery delivery = Delivery::automatic; // used only if the edge goes over a link
  std::string domain;                      // the domain in which the bytes must be; "": the plan decides
  std::string over;                        // unfolded: it is one entry of a list over all streams of this set
  std::string item_of;                     // unfolded: it carries the items of this stream into or out of a group
  Place place;
  Place source_place; // in a one-line pipeline: the place that names the source; line 0: the same as `place`
};

struct Param {
  std::string name; // nested keys joined by dots, as --set writes them
  std::string text; // scalar as written; a list or map as JSON
  Place place;      // place of the value
  Place name_place; // place of the key
};

// How the handlers of a group take the items of all streams together. A size or a wait fixes it; else it is learnt.
struct Batch {
  uint32_t size = 0;      // items that are waited for; 0: learnt
  int64_t wait_ns = -1;   // the oldest item waits for the others for so long; -1: a period
  int64_t budget_ns = 0;  // from an item's arrival to its result; 0: a period
  uint32_t max = 0;       // the most items of a firing, a power of two; 0: as the handlers say
  uint32_t in_flight = 0; // firings at a time; 0: the plan decides
  Late late = Late::automatic;
  bool of_rows = false; // an item counts as many places as it has rows
  Place place;
  bool is_fixed() const { return size > 0 || wait_ns >= 0; }
};

struct Handler {
  std::string name, type;
  std::vector<Param> params;
  uint32_t every = 1;
  std::string device;     // "": the plan decides
  std::string clock;      // "": the clock of its inputs, or the only one
  std::string node;       // the node that runs it; "": the coordinator, which is the first of plan::Options::nodes
  std::string for_each;   // a template: each stream of this set has an instance of it
  std::string written_as; // unfolded: the template that it is an instance of; "": it is none
  std::string stream;     // unfolded: an instance's stream
  std::string group;      // unfolded: it works item by item for all streams, in this group; "": it does not
  OnError on_error = OnError::fail;
  int64_t budget_ns = 0;    // 0: the run's default
  int64_t patience_ns = 0;  // for its other functions: the second time of `budget`; 0: the run's default
  uint32_t concurrency = 0; // stateless instances; 0: not given, which means one
  std::optional<Batch> batch;
  bool refused = false;  // a part of it was refused and the error kept: the missing part causes no further errors
  bool inserted = false; // the plan inserted it because two formats do not match; it is in no text
  Place place;           // place of its name
  Place type_place;
  Place for_each_place;
};

struct Clock {
  std::string name; // "" for the only one
  ClockMode mode = ClockMode::automatic;
  Rational rate;                // beats a second
  uint32_t in_flight = 0;       // 0: the plan decides
  uint32_t in_flight_least = 0; // the plan may lower in_flight to this if memory is short; 0: it may not lower it
  std::string node;             // its home; "": the node of its sources, else of its first handler
  std::string set;              // unfolded: it paces a stream of this set, or all of them; "": it paces none
  bool fails_alone = false;     // unfolded: a failure of its stream's handlers ends the stream, and not the run
  bool restarts = false;        // unfolded: such a stream begins anew
  bool has_room = false;        // unfolded: another stream may take the place of one that is over
  bool is_seat = false;         // unfolded: it has no stream at first
  bool is_group = false;        // unfolded: its ticks are items of the set's streams
  Place place;
  Place node_place; // place of the home's name
};

// One of the processes that run the pipeline together.
struct Node {
  std::string name;
  std::string address;              // other nodes reach it there; "": not given
  std::vector<std::string> devices; // as --devices lists them; empty: not given
  std::string id;                   // the identity that it has to prove; "": not given
  bool coordinator = false;         // true if the text says so; if no node's does, the first one is the coordinator
  Place place;
};

// One of the inputs of a set.
struct Stream {
  std::string name;
  std::vector<Param> fields; // "path": what {path} stands for; "draw.thickness": this stream's own value of a parameter
  bool is_seat = false;      // unfolded: room for a stream that is added while it runs
  Place place;
};

// Inputs of a kind, such as cameras. A handler with `for_each: NAME` is a template: each stream of the set has an
// instance of it, and a clock of its own that paces its instances.
struct StreamSet {
  std::string name;
  std::vector<Stream> items; // in the order of the text, or of the files that a pattern finds
  uint32_t max = 0;          // streams that there may be at a time; 0: as many as there are items
  OnStreamError on_error = OnStreamError::end;
  bool shared_clock = false; // one clock, named like the set, paces all streams
  Place place;

  const Stream* find(const std::string& stream) const {
    for (const Stream& item : items)
      if (item.name == stream) return &item;
    return nullptr;
  }
};

struct Graph {
  std::string name;
  std::vector<Handler> handlers; // in the order of the text
  std::vector<Edge> edges;
  std::vector<Clock> clocks; // empty: one, automatic
  std::vector<Node> nodes;   // in the order of the text; empty: one machine runs everything
  std::vector<StreamSet> streams;

  const Handler* find(const std::string& handler) const {
    for (const Handler& h : handlers)
      if (h.name == handler) return &h;
    return nullptr;
  }
  const StreamSet* find_set(const std::string& set) const {
    for (const StreamSet& one : streams)
      if (one.name == set) return &one;
    return nullptr;
  }
};

// Parses a pipeline file's text (YAML 1.1 subset) or a one-line string. Throws Failure, codes MR02xx, with line and
// column. If `kept` is given, mistakes that do not end the reading are added to it, and the parts with them are left
// out of the graph.
Graph parse_file(const std::string& path, std::vector<Error>* kept = nullptr);
Graph parse_yaml(const std::string& text, const std::string& file, std::vector<Error>* kept = nullptr);
Graph parse_line(const std::string& text, std::vector<Error>* kept = nullptr);
// Reads the file that `pipeline` names, or else parses it as a one-line string.
Graph load(const std::string& pipeline, std::vector<Error>* kept = nullptr);
// Applies "handler.param=value" (nested keys by dots; reserved keys like every, device too), to a template for all its
// streams, or to one of its instances: "draw@gate7.thickness=3". Throws Failure, MR01xx.
void apply_set(Graph& graph, const std::string& assignment);
// The names of a graph's nodes: the coordinator first, then the others in the order of the text.
std::vector<std::string> node_names(const Graph& graph);
// The name of the node that a handler runs on, in a graph that has nodes.
std::string node_of(const Graph& graph, const Handler& handler);
// The words for the clock modes, by ClockMode.
const std::vector<std::string>& clock_modes();
// Keys that a handler may not use as parameter names (design.md §7), "x-*" aside.
const std::vector<std::string>& reserved_keys();
// True for a key of an input's map, such as policy.
bool is_edge_key(const std::string& name);
// The pipeline file of a graph, in canonical form: parse_yaml(to_yaml(g)) is the same graph except for its places.
std::string to_yaml(const Graph& graph);
// True if two graphs say the same; places and the order of edges do not count.
bool same(const Graph& a, const Graph& b);
// The JSON Schema of the pipeline file, made from the tables that the parser reads by.
std::string json_schema();

} // namespace millrace::graph
