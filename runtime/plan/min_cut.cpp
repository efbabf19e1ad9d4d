// Chooses one of two domains for each task so that the sum of calls and copies is least. This is a minimum cut, in
// which a task's calls are arcs to both ends and a copy is an arc between the producer and all its readers on the other
// side.
#include "plan/min_cut.h"

#include <algorithm>

namespace millrace::plan {

namespace {

// The price of a way between domains that nothing joins. It is more than anything that could be chosen instead, and
// finite, because an infinite flow leaves no number on the arcs that it takes.
constexpr double kNoWayUs = 1e12;

// Maximum flow by shortest augmenting paths in layers (Dinic).
class Flow {
 public:
  explicit Flow(uint32_t nodes) : first_(nodes) {}
  void add(uint32_t from, uint32_t to, double capacity) {
    first_[from].push_back(static_cast<uint32_t>(arcs_.size()));
    arcs_.push_back({to, capacity});
    first_[to].push_back(static_cast<uint32_t>(arcs_.size()));
    arcs_.push_back({from, 0});
  }
  // The nodes on the source's side of the cheapest cut.
  std::vector<bool> cut(uint32_t source, uint32_t sink) {
    while (layer(source, sink)) {
      next_.assign(first_.size(), 0);
      while (push(source, sink, Prices::kInfeasible) > 0) {
      }
    }
    std::vector<bool> side(first_.size());
    for (size_t n = 0; n < side.size(); ++n) side[n] = depth_[n] >= 0;
    return side;
  }

 private:
  struct Arc {
    uint32_t to;
    double left;
  };
  static constexpr double kNothing = 1e-12;

  bool layer(uint32_t source, uint32_t sink) {
    depth_.assign(first_.size(), -1);
    depth_[source] = 0;
    layered_.assign(1, source);
    for (size_t i = 0; i < layered_.size(); ++i) {
      const uint32_t at = layered_[i];
      for (const uint32_t a : first_[at]) {
        if (arcs_[a].left <= kNothing || depth_[arcs_[a].to] >= 0) continue;
        depth_[arcs_[a].to] = depth_[at] + 1;
        layered_.push_back(arcs_[a].to);
      }
    }
    return depth_[sink] >= 0;
  }

  double push(uint32_t at, uint32_t sink, double most) {
    if (at == sink) return most;
    for (size_t& i = next_[at]; i < first_[at].size(); ++i) {
      const uint32_t a = first_[at][i];
      if (arcs_[a].left <= kNothing || depth_[arcs_[a].to] != depth_[at] + 1) continue;
      const double pushed = push(arcs_[a].to, sink, std::min(most, arcs_[a].left));
      if (pushed <= 0) continue;
      arcs_[a].left -= pushed;
      arcs_[a ^ 1].left += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<std::vector<uint32_t>> first_;
  std::vector<Arc> arcs_;
  std::vector<int> depth_;
  std::vector<uint32_t> layered_; // nodes that have a depth, the nearest first
  std::vector<size_t> next_;
};

} // namespace

Places cut(const Prices& prices, const WaysBySize& ways, Places places, uint32_t a, uint32_t b) {
  const auto tasks = static_cast<uint32_t>(prices.tasks.size());
  const auto buffers = static_cast<uint32_t>(prices.buffers.size());
  const uint32_t source = tasks + 2 * buffers, sink = source + 1; // a task on the source's side runs in `a`
  Flow flow(sink + 1);
  const auto free = [&](uint32_t t) {
    return prices.tasks[t].us[a] != Prices::kInfeasible || prices.tasks[t].us[b] != Prices::kInfeasible;
  };
  for (uint32_t t = 0; t < tasks; ++t) {
    if (!free(t)) continue;
    flow.add(source, t, prices.tasks[t].streams * prices.tasks[t].us[b]); // paid if it runs in b
    flow.add(t, sink, prices.tasks[t].streams * prices.tasks[t].us[a]);
  }
  for (uint32_t i = 0; i < buffers; ++i) {
    const Prices::Buffer& buffer = prices.buffers[i];
    if (!free(buffer.producer)) continue;
    // One copy serves all readers on the other side: a node that follows them, whose arc to the producer has the price.
    const uint32_t to_b = tasks + 2 * i, to_a = to_b + 1;
    flow.add(buffer.producer, to_b, std::min(buffer.streams * ways.of(i).us(a, b), kNoWayUs));
    flow.add(to_a, buffer.producer, std::min(buffer.streams * ways.of(i).us(b, a), kNoWayUs));
    for (const uint32_t reader : buffer.readers) {
      if (!free(reader)) continue;
      flow.add(to_b, reader, Prices::kInfeasible);
      flow.add(reader, to_a, Prices::kInfeasible);
    }
  }
  const std::vector<bool> side = flow.cut(source, sink);
  for (uint32_t t = 0; t < tasks; ++t)
    if (free(t)) places[t] = side[t] ? a : b;
  return places;
}

Places least_sum(const Prices& prices, Places places, uint32_t a, uint32_t b) {
  return cut(prices, WaysBySize(prices), std::move(places), a, b);
}

} // namespace millrace::plan
