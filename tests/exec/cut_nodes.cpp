// Draws nodes for the handlers of a sample, and the links between them; see cut_nodes.h.
#include "cut_nodes.h"

#include <random>
#include <string>
#include <vector>

namespace millrace::test {

namespace {

class Cutting {
 public:
  explicit Cutting(uint64_t seed) : random_(seed) {}

  // Puts the sample's handlers on one to four nodes. Most stay beside what they read.
  Nodes cut(Sample& sample) {
    Nodes nodes;
    nodes.names.resize(1 + up_to(3));
    for (size_t n = 0; n < nodes.names.size(); ++n) nodes.names[n] = "node" + std::to_string(n);
    const std::string& home = nodes.names[up_to(nodes.names.size() - 1)];
    for (graph::Handler& handler : sample.pipeline.graph.handlers) {
      handler.node = nodes.names[up_to(nodes.names.size() - 1)];
      if (handler.type == "t.count" || handler.type == "t.foreign") handler.node = home;
      if (up_to(2) > 0) continue;
      for (const graph::Edge& edge : sample.pipeline.graph.edges)
        if (edge.target == handler.name && !is_source(handler))
          handler.node = sample.pipeline.graph.find(edge.source)->node;
    }
    std::vector<Link> links;
    for (size_t n = 0; n < nodes.names.size() * nodes.names.size(); ++n) links.push_back(draw_link());
    nodes.link = [links, count = nodes.names.size()](size_t from, size_t to) { return links[from * count + to]; };
    return nodes;
  }

 private:
  uint64_t up_to(uint64_t most) { return random_() % (most + 1); }
  static bool is_source(const graph::Handler& handler) {
    return handler.type == "t.count" || handler.type == "t.foreign";
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

std::string places(const Sample& sample) {
  std::string words;
  for (const graph::Handler& handler : sample.pipeline.graph.handlers)
    words += handler.name + " on " + handler.node + "\n";
  return words;
}

Nodes cut_over_nodes(Sample& sample, uint64_t seed) { return Cutting(seed).cut(sample); }

} // namespace millrace::test
