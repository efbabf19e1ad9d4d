// Cuts graphs over nodes; see cutting.h.
#include "cutting.h"

#include <map>
#include <random>

namespace millrace::test {

namespace {

class Cutting {
 public:
  explicit Cutting(uint64_t seed) : random_(seed) {}

  Nodes cut(graph::Graph& graph) {
    Nodes nodes;
    nodes.names.resize(1 + up_to(3));
    for (size_t n = 0; n < nodes.names.size(); ++n) nodes.names[n] = "node" + std::to_string(n);
    std::map<std::string, std::string> homes; // by clock
    for (graph::Handler& handler : graph.handlers) {
      handler.node = nodes.names[up_to(nodes.names.size() - 1)];
      if (is_source(handler)) handler.node = homes.try_emplace(handler.clock, handler.node).first->second;
      if (up_to(2) > 0) continue;
      for (const graph::Edge& edge : graph.edges)
        if (edge.target == handler.name && !is_source(handler)) handler.node = graph.find(edge.source)->node;
    }
    for (graph::Clock& clock : graph.clocks) // one without sources may begin anywhere
      if (!homes.count(clock.name) && up_to(2) == 0) clock.node = nodes.names[up_to(nodes.names.size() - 1)];
    join(nodes);
    return nodes;
  }

  void join(Nodes& nodes) {
    std::vector<Link> links;
    for (size_t n = 0; n < nodes.names.size() * nodes.names.size(); ++n) links.push_back(draw_link());
    nodes.link = [links, count = nodes.names.size()](size_t from, size_t to) { return links[from * count + to]; };
  }

 private:
  uint64_t up_to(uint64_t most) { return random_() % (most + 1); }
  static bool is_source(const graph::Handler& handler) {
    return handler.type == "t.count" || handler.type == "t.foreign" || handler.type == "c.timed";
  }
  Link draw_link() {
    Link link;
    link.latency_ns = static_cast<int64_t>(up_to(3) == 0 ? 0 : up_to(20) * 1'000'000);
    link.ns_per_byte = up_to(2) == 0 ? static_cast<double>(up_to(10'000)) : 0.01;
    for (int64_t at = 0; up_to(1) == 0;) {
      at += static_cast<int64_t>(up_to(100'000'000));
      link.cuts.emplace_back(at, at + static_cast<int64_t>(up_to(400'000'000)));
      at = link.cuts.back().second;
    }
    return link;
  }

  std::mt19937_64 random_;
};

} // namespace

Nodes cut_at_random(Pipeline& pipeline, uint64_t seed) { return Cutting(seed).cut(pipeline.graph); }

Nodes linked_at_random(const std::vector<std::string>& names, uint64_t seed) {
  Nodes nodes;
  nodes.names = names;
  Cutting(seed).join(nodes);
  return nodes;
}

std::string places_of(const Pipeline& pipeline) {
  std::string words;
  for (const graph::Handler& handler : pipeline.graph.handlers) words += handler.name + " on " + handler.node + "\n";
  for (const graph::Clock& clock : pipeline.graph.clocks)
    if (!clock.node.empty()) words += "clock " + clock.name + " on " + clock.node + "\n";
  return words;
}

} // namespace millrace::test
