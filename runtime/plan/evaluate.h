// Evaluates placements for the search and the minimum cut. Tables that depend on prices alone are made once, because
// the search evaluates many placements. Private to placement; see placement.h.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "plan/placement.h"

namespace millrace::plan {

// True if the two differ by rounding alone.
bool same(double a, double b);

// The cheapest ways of each buffer, and the time of a slow copy on each hop; buffers of one size share them.
class WaysBySize {
 public:
  explicit WaysBySize(const Prices& prices) : domains_(prices.domains) {
    for (const Prices::Buffer& buffer : prices.buffers) {
      const auto [at, fresh] = known_.try_emplace(buffer.bytes);
      if (fresh) at->second = OfSize(prices, buffer.bytes);
      of_.push_back(&at->second);
    }
  }
  WaysBySize(const WaysBySize&) = delete;
  const CheapestRoutes& of(size_t buffer) const { return of_[buffer]->ways; }
  double late_hop_us(size_t buffer, uint32_t from, uint32_t to) const {
    return of_[buffer]->late_us[from * domains_ + to];
  }

 private:
  struct OfSize {
    OfSize() = default;
    OfSize(const Prices& prices, double bytes)
        : ways(prices.domains, [&](uint32_t from, uint32_t to) { return prices.hop(from, to).copy_us(bytes); }) {
      for (const HopPrice& hop : prices.hops) late_us.push_back(hop.late_copy_us(bytes));
    }
    CheapestRoutes ways;
    std::vector<double> late_us; // [from * domains + to]
  };

  const uint32_t domains_;
  std::map<double, OfSize> known_;
  std::vector<const OfSize*> of_;
};

// True if all readers of a buffer in one domain together read it in place for no more than a copy costs.
inline bool reads_in_place(const Prices& prices, const Prices::Buffer& buffer, const CheapestRoutes& ways,
                           const Places& places, uint32_t to) {
  const uint32_t from = places[buffer.producer];
  const double access = prices.hop(from, to).access_us_per_byte;
  if (access == Prices::kInfeasible || from == to) return false;
  const auto readers = std::count_if(buffer.readers.begin(), buffer.readers.end(),
                                     [&](uint32_t reader) { return places[reader] == to; });
  return access * buffer.bytes * static_cast<double>(readers) <= ways.us(from, to);
}

// Calls `copy(from, to)` for each copy that a buffer needs; the copy to a domain comes before the copies from it.
template <class Copy>
void each_copy(const Prices& prices, const Prices::Buffer& buffer, const CheapestRoutes& ways, const Places& places,
               const Copy& copy) {
  const uint32_t from = places[buffer.producer];
  uint64_t wanted = 0; // domains with a reader, and those on the way there
  for (const uint32_t reader : buffer.readers) wanted |= uint64_t{1} << places[reader];
  wanted &= ~(uint64_t{1} << from);
  if (wanted == 0) return;
  for (uint32_t to = 0; to < prices.domains; ++to)
    if (wanted >> to & 1 && reads_in_place(prices, buffer, ways, places, to)) wanted &= ~(uint64_t{1} << to);
  for (uint32_t i = prices.domains; i-- > 1;) {
    const uint32_t to = ways.nearest(from, i);
    if (wanted >> to & 1) wanted |= uint64_t{1} << ways.before(from, to);
  }
  for (uint32_t i = 1; i < prices.domains; ++i) {
    const uint32_t to = ways.nearest(from, i);
    if (wanted >> to & 1) copy(ways.before(from, to), to);
  }
}

// Lists the buffers that each task makes or reads; the lists of all tasks lie one after another.
class Lists {
 public:
  template <class Each> // each(add): calls add(task, buffer)
  Lists(size_t tasks, const Each& each) : begin_(tasks + 1, 0) {
    each([&](uint32_t task, uint32_t) { ++begin_[task + 1]; });
    for (size_t t = 0; t < tasks; ++t) begin_[t + 1] += begin_[t];
    items_.resize(begin_.back());
    std::vector<uint32_t> at(begin_.begin(), begin_.end() - 1);
    each([&](uint32_t task, uint32_t buffer) { items_[at[task]++] = buffer; });
  }
  std::span<const uint32_t> of(uint32_t task) const {
    return {items_.data() + begin_[task], items_.data() + begin_[task + 1]};
  }

 private:
  std::vector<uint32_t> begin_, items_;
};

// The order by which one placement is better than another. even: if loads count and the fullest resources are equally
// full, the next fullest decides before the latency. A search can then relieve two full resources one after the other.
enum class Goal { best, even };

// The one evaluator; it keeps its tables from one candidate to the next.
class Evaluator {
 public:
  Evaluator(const Prices& prices, const WaysBySize& ways);

  Score operator()(const Places& places);
  // Returns true if `places` are better than the placement that has `score`, and sets `score` to theirs. It stops
  // calculating once they cannot be better.
  bool improves(const Places& places, Score& score, Goal goal = Goal::best);

 private:
  // Everything but the latency.
  Score loads(const Places& places);
  // Finds the regions and adds the time that each takes beside its calls. The n-th region of a domain comes after a way
  // out of the domain from the region before it (capture.cpp).
  void add_regions(const Places& places);
  // The extra time of a task that reads some of its inputs in place.
  double reading_us(uint32_t t, const Places& places) const;
  // The time of one tick alone, or a time beyond `enough_us` once it takes longer than that. Each call runs on the
  // worker of its domain that is free first, each copy on its engine.
  double latency_us(const Places& places, double enough_us);
  void carry(uint32_t b, double made, const Places& places);

  const Prices& prices_;
  const Lists made_by_, read_by_;
  const WaysBySize& ways_;
  const bool can_access_;
  std::vector<double> load_, engine_; // by domain; [from * domains + to]
  std::vector<uint32_t> passed_; // [task * domains + domain]: regions there on the way to the task, its own included
  std::vector<double> region_share_; // [domain * tasks + region]: share of ticks on which it is launched
  std::vector<bool> opens_region_;   // by task: it is the first of its region
  std::vector<double> there_;        // [buffer * domains + domain]: when the buffer is there
  std::vector<std::vector<double>> worker_free_;
};

} // namespace millrace::plan
