// The graph as a person declared it, from a pipeline file, a one-line string or code: nothing resolved, nothing
// defaulted beyond what the text says. The plan starts from this and never changes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/error.h"

namespace millrace::graph {

enum class Policy { sync, latest, queue, align };
enum class Full { block, drop_oldest, drop_newest };
enum class OnError { fail, skip, restart, bypass };
enum class ClockMode { automatic, realtime, free, source };

struct Rational {
  int64_t numerator = 0, denominator = 1; // 0: not given
};

// One connection, from one output to one entry of one input.
struct Edge {
  std::string source, source_port; // port "" means the handler's only output
  std::string target, target_port; // port "" means the handler's only (or only required) input
  uint32_t target_index = 0;       // position in an input that takes a list
  Policy policy = Policy::sync;
  uint32_t lag = 0;           // latest: ticks
  uint32_t depth = 1;         // queue: values
  Full full = Full::block;    // queue
  int64_t within_ns = 0;      // align
  uint32_t delay = 0;         // ticks
  uint32_t gap = 0;           // ticks without a value, while the reader owes a result
  bool initial_empty = false; // `initial: empty`: a value of extent 0 before the first
  bool forbid_copy = false, forbid_convert = false;
  std::string domain; // where the bytes must be; "": the plan decides
  Place place;
  Place source_place; // of a line, where what it comes from is named; line 0: at `place`
};

struct Param {
  std::string name; // nested keys joined by dots, as --set writes them
  std::string text; // scalar as written; a list or map as JSON
  Place place;      // of the value
  Place name_place; // of the key
};

struct Handler {
  std::string name, type;
  std::vector<Param> params;
  uint32_t every = 1;
  std::string device; // "": the plan decides
  std::string clock;  // "": of its inputs, or the only one
  OnError on_error = OnError::fail;
  int64_t budget_ns = 0;    // 0: the run's default
  int64_t patience_ns = 0;  // of its other functions, also `budget`; 0: the run's default
  uint32_t concurrency = 0; // stateless instances; 0: it was not said, which is one
  bool refused = false;     // a part of it was refused and kept apart: nothing follows from what is missing
  bool inserted = false;    // by the plan, which found that two formats do not meet; no text says it
  Place place;              // of its name
  Place type_place;
};

struct Clock {
  std::string name; // "" for the only one
  ClockMode mode = ClockMode::automatic;
  Rational rate;                // beats a second
  uint32_t in_flight = 0;       // 0: the plan decides
  uint32_t in_flight_least = 0; // as far as the plan may lower it where memory is short; 0: not at all
  Place place;
};

struct Graph {
  std::string name;
  std::vector<Handler> handlers; // in the order of the text
  std::vector<Edge> edges;
  std::vector<Clock> clocks; // empty: one, automatic

  const Handler* find(const std::string& handler) const {
    for (const Handler& h : handlers)
      if (h.name == handler) return &h;
    return nullptr;
  }
};

// Parses a pipeline file's text (YAML 1.1 subset) or a one-line string. Throws Failure, codes MR02xx, with line and
// column. With `kept`, mistakes that do not end the reading are added to it and left out of the graph.
Graph parse_file(const std::string& path, std::vector<Error>* kept = nullptr);
Graph parse_yaml(const std::string& text, const std::string& file, std::vector<Error>* kept = nullptr);
Graph parse_line(const std::string& text, std::vector<Error>* kept = nullptr);
// A file where `pipeline` names one, else a one-line string.
Graph load(const std::string& pipeline, std::vector<Error>* kept = nullptr);
// Applies "handler.param=value" (nested keys by dots; reserved keys like every, device too). Throws Failure, MR01xx.
void apply_set(Graph& graph, const std::string& assignment);
// Keys that a handler may not use as parameter names (design.md §7), "x-*" aside.
const std::vector<std::string>& reserved_keys();
// Such as policy, of the map of an input.
bool is_edge_key(const std::string& name);
// The pipeline file of a graph, in canonical form: parse_yaml(to_yaml(g)) is the same graph but for its places.
std::string to_yaml(const Graph& graph);
// Whether two graphs say the same; places and the order of edges are left out of account.
bool same(const Graph& a, const Graph& b);
// The JSON Schema of the pipeline file, made from the tables that the parser reads by.
std::string json_schema();

} // namespace millrace::graph
