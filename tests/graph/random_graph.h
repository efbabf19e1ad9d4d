// Random graphs that a pipeline file can say, and texts that are nearly right: the same for the same seed.
#pragma once

#include <algorithm>
#include <bit>
#include <random>
#include <string>

#include "graph/graph.h"

namespace millrace::graph {

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  int64_t up_to(int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random_); }
  bool often() { return up_to(2) > 0; }
  bool seldom() { return up_to(4) == 0; }

  std::string name() {
    static const std::string kFirst = "abzAZ_", kRest = "abzAZ_019-";
    std::string text(1, pick(kFirst));
    for (int64_t n = up_to(8); n > 0; --n) text += pick(kRest);
    return seldom() ? "null" : text;
  }

  // Any text of printable characters, quotes, line breaks, control characters and letters of up to four bytes.
  std::string text() {
    static const std::vector<std::string> kPieces = {
        "a", "7",    " ",    ":", ": ", "#", " #", "-", "- ", "'",  "\"",   "\\",  "\n",     "\t",    "{",
        "}", "[",    "]",    ",", "&",  "*", "!",  "%", "@",  "~",  "|",    ">",   "\r",     "?",     "ä",
        "€", "\x01", "\x7F", "=", "<<", ".", "0",  "😀", "`",  "..", "null", "---", "\u2028", "\u0085"};
    std::string all;
    for (int64_t n = up_to(6); n > 0; --n)
      all += kPieces[static_cast<size_t>(up_to(static_cast<int64_t>(kPieces.size()) - 1))];
    return all;
  }

  // A random `batch:` of one key or more: fixed, or learnt.
  Batch batch() {
    Batch batch;
    const bool is_fixed = up_to(1) == 0;
    if (is_fixed && often()) batch.size = static_cast<uint32_t>(1 + up_to(63));
    if (is_fixed && (batch.size == 0 || often())) batch.wait_ns = up_to(3'600'000'000'000);
    if (!is_fixed && often()) batch.budget_ns = 1 + up_to(3'599'999'999'999);
    if (!is_fixed) batch.late = static_cast<Late>(up_to(2));
    const bool is_empty = !is_fixed && batch.budget_ns == 0 && batch.late == Late::automatic;
    if (is_empty || often()) batch.max = std::bit_ceil(std::max(batch.size, static_cast<uint32_t>(1 + up_to(63))));
    if (often()) batch.in_flight = static_cast<uint32_t>(1 + up_to(1));
    batch.of_rows = seldom();
    return batch;
  }

  Graph graph() {
    Graph graph;
    if (often()) graph.name = "n" + text();
    for (int64_t n = seldom() ? 1 + up_to(2) : 0, i = 0; i < n; ++i)
      graph.nodes.push_back(node(name() + std::to_string(i), i == 1));
    for (int64_t n = seldom() ? 1 + up_to(2) : 0, i = 0; i < n; ++i)
      graph.clocks.push_back(clock("clock" + std::to_string(i), graph));
    const bool named = !graph.clocks.empty();
    if (!named && often()) graph.clocks.push_back(clock("", graph));
    for (int64_t n = 1 + up_to(9), i = 0; i < n; ++i)
      graph.handlers.push_back(handler(name() + std::to_string(i), graph, named));
    for (const Handler& target : graph.handlers) add_inputs(graph, target.name);
    return graph;
  }

 private:
  char pick(const std::string& from) { return from[static_cast<size_t>(up_to(static_cast<int64_t>(from.size()) - 1))]; }

  // `may_coordinate` for one node of a graph at most.
  Node node(const std::string& name, bool may_coordinate) {
    Node node;
    node.name = name;
    if (often()) node.address = "n" + text();
    for (int64_t n = up_to(2), i = 0; i < n; ++i) node.devices.push_back(i == 0 ? "cpu" : "cuda:" + std::to_string(i));
    if (seldom()) node.id = "mr:" + text();
    node.coordinator = may_coordinate && often();
    return node;
  }

  Clock clock(const std::string& name, const Graph& graph) {
    Clock clock;
    clock.name = name;
    clock.mode = static_cast<ClockMode>(up_to(3));
    if (often()) clock.rate = seldom() ? Rational{30000, 1001} : Rational{1 + up_to(1000), 1};
    if (often()) clock.in_flight = static_cast<uint32_t>(1 + up_to(7));
    if (clock.in_flight > 1 && seldom()) clock.in_flight_least = clock.in_flight - 1;
    if (!graph.nodes.empty() && often()) clock.node = graph.nodes[0].name;
    return clock;
  }

  Handler handler(const std::string& name, const Graph& graph, bool named) {
    Handler handler;
    handler.name = name;
    handler.type = this->name() + "." + this->name();
    for (int64_t n = up_to(4), i = 0; i < n; ++i)
      handler.params.push_back({"p" + std::to_string(i) + (seldom() ? ".deep" : ""), text(), {}, {}});
    if (often()) handler.every = static_cast<uint32_t>(1 + up_to(9));
    if (seldom()) handler.device = "sim:" + std::to_string(up_to(3));
    if (named && often()) handler.clock = graph.clocks[0].name;
    if (!graph.nodes.empty() && often()) handler.node = graph.nodes.back().name;
    handler.on_error = static_cast<OnError>(up_to(3));
    if (seldom()) handler.budget_ns = 1 + up_to(3'599'999'999'999);
    if (handler.budget_ns > 0 && seldom()) handler.patience_ns = 1 + up_to(3'599'999'999'999);
    if (seldom()) handler.concurrency = static_cast<uint32_t>(1 + up_to(15));
    return handler;
  }

  void add_inputs(Graph& graph, const std::string& target) {
    for (int64_t ports = up_to(2), p = 0; p < ports; ++p) {
      const std::string port = p == 0 ? "" : name() + std::to_string(p);
      for (int64_t n = 1 + up_to(2), i = 0; i < n; ++i) graph.edges.push_back(edge(graph, target, port, i));
    }
  }

  Edge edge(const Graph& graph, const std::string& target, const std::string& port, int64_t index) {
    Edge edge;
    edge.source = graph.handlers[static_cast<size_t>(up_to(static_cast<int64_t>(graph.handlers.size()) - 1))].name;
    if (seldom()) edge.source_port = name();
    edge.target = target;
    edge.target_port = port;
    edge.target_index = static_cast<uint32_t>(index);
    edge.policy = static_cast<Policy>(up_to(3));
    if (edge.policy == Policy::latest) edge.lag = static_cast<uint32_t>(up_to(4));
    if (edge.policy == Policy::queue) edge.depth = static_cast<uint32_t>(1 + up_to(9));
    if (edge.policy == Policy::queue) edge.full = static_cast<Full>(up_to(2));
    if (edge.policy == Policy::align) edge.within_ns = 1 + up_to(999'999'999);
    edge.delay = static_cast<uint32_t>(seldom() ? up_to(5) : 0);
    edge.initial_empty = seldom();
    edge.forbid_copy = seldom();
    edge.forbid_convert = seldom();
    if (seldom()) edge.domain = "edge/cuda:0";
    if (seldom()) edge.delivery = static_cast<Delivery>(up_to(2));
    return edge;
  }

  std::mt19937 random_;
};

} // namespace millrace::graph
