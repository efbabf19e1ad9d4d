// What one placement costs, as the search and the cut calculate it over and over: tables that depend on prices alone
// are made once. Private to placement; see placement.h.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "plan/placement.h"

namespace millrace::plan {

// Differences that are of the rounding alone.
bool same(double a, double b);

// The cheapest ways of each buffer, and how long a slow copy takes on each hop; buffers of one size share theirs.
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

// True where all readers of a buffer in one domain together read it in place for less than a copy costs.
inline bool reads_in_place(const Prices& prices, const Prices::Buffer& buffer, const CheapestRoutes& ways,
                           const Places& places, uint32_t to) {
  const uint32_t from = places[buffer.producer];
  const double access = prices.hop(from, to).access_us_per_byte;
  if (access == Prices::kInfeasible || from == to) return false;
  const auto readers = std::count_if(buffer.readers.begin(), buffer.readers.end(),
                                     [&](uint32_t reader) { return places[reader] == to; });
  return access * buffer.bytes * static_cast<double>(readers) <= ways.us(from, to);
}

// Calls `copy(from, to)` for each copy that a buffer needs, those before a hop before it.
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

// Which buffers each task makes or reads, one list after another.
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

// The one evaluator; it keeps its tables from one candidate to the next.
class Evaluator {
 public:
  Evaluator(const Prices& prices, const WaysBySize& ways);

  Score operator()(const Places& places);

 private:
  // Finds the regions and adds what each of them takes beside its calls. The n-th region of a domain comes after the
  // way out of the one before it (capture.cpp).
  void add_regions(const Places& places);
  // What a task takes longer because it reads some of its inputs where they are.
  double reading_us(uint32_t t, const Places& places) const;
  // One tick alone: each call on the worker of its domain that is free first, each copy on its engine.
  double latency_us(const Places& places);
  void carry(uint32_t b, double made, const Places& places);

  const Prices& prices_;
  const Lists made_by_, read_by_;
  const WaysBySize& ways_;
  const bool can_access_;
  std::vector<double> load_, engine_; // by domain; [from * domains + to]
  std::vector<uint32_t> passed_;      // [task * domains + domain]: regions there on the way to it, its own included
  std::vector<double> region_share_;  // [domain * tasks + region]: of ticks on which it is launched
  std::vector<bool> opens_region_;    // by task: it is the first of its region
  std::vector<double> there_;         // [buffer * domains + domain]: when it is there
  std::vector<std::vector<double>> worker_free_;
};

} // namespace millrace::plan
