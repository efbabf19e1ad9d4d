// The evaluator, the minimum cut and the search; see placement.h.
#include "plan/placement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <span>

namespace millrace::plan {

namespace {

// The part of a period to which a resource may be filled (5.3).
constexpr double kFillMax = 0.8;
// Placements that are all tried.
constexpr double kEnumerateMax = 4096;
// Candidates that a search looks at: without end up to this many tasks, then so few that a large graph plans at once.
constexpr size_t kTasksSmall = 32, kLooksOfLarge = 220;
// Tasks that are also moved two at a time.
constexpr size_t kTasksInPairs = 16;
// By how much a device's calls are made dearer before a cut, so that fewer of them go there: prices of its load.
constexpr double kLoadPrices[] = {1, 1.5, 3};
// Times that differ by less are as good as each other (5.4).
constexpr double kSamePart = 0.05, kSameUs = 50;

bool same(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

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
  const Ways& of(size_t buffer) const { return of_[buffer]->ways; }
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
    Ways ways;
    std::vector<double> late_us; // [from * domains + to]
  };

  const uint32_t domains_;
  std::map<double, OfSize> known_;
  std::vector<const OfSize*> of_;
};

// Where all readers of a buffer in one domain together read it in place for less than a copy costs.
bool reads_in_place(const Prices& prices, const Prices::Buffer& buffer, const Ways& ways, const Places& places,
                    uint32_t to) {
  const uint32_t from = places[buffer.producer];
  const double access = prices.hop(from, to).access_us_per_byte;
  if (access == Prices::kNever || from == to) return false;
  const auto readers = std::count_if(buffer.readers.begin(), buffer.readers.end(),
                                     [&](uint32_t reader) { return places[reader] == to; });
  return access * buffer.bytes * static_cast<double>(readers) <= ways.us(from, to);
}

// Calls `copy(from, to)` for each copy that a buffer needs, those before a hop before it.
template <class Copy>
void each_copy(const Prices& prices, const Prices::Buffer& buffer, const Ways& ways, const Places& places,
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
  Evaluator(const Prices& prices, const WaysBySize& ways)
      : prices_(prices),
        made_by_(prices.tasks.size(),
                 [&](const auto& add) {
                   for (uint32_t b = 0; b < prices.buffers.size(); ++b) add(prices.buffers[b].producer, b);
                 }),
        read_by_(prices.tasks.size(),
                 [&](const auto& add) {
                   for (uint32_t b = 0; b < prices.buffers.size(); ++b)
                     for (const uint32_t reader : prices.buffers[b].readers) add(reader, b);
                 }),
        ways_(ways),
        can_access_(std::any_of(prices.hops.begin(), prices.hops.end(),
                                [](const HopPrice& hop) { return hop.access_us_per_byte != Prices::kNever; })),
        opens_region_(prices.tasks.size(), false),
        worker_free_(prices.domains) {}

  Score operator()(const Places& places) {
    Score score;
    load_.assign(prices_.domains, 0);
    engine_.assign(prices_.domains * prices_.domains, 0);
    for (uint32_t t = 0; t < places.size(); ++t) {
      const Prices::Task& task = prices_.tasks[t];
      const double us = (task.us[places[t]] + reading_us(t, places)) * task.share;
      load_[places[t]] += us;
      score.load_us = std::max(score.load_us, us); // it is not entered twice at a time
    }
    add_regions(places);
    for (uint32_t b = 0; b < prices_.buffers.size(); ++b) {
      const Prices::Buffer& buffer = prices_.buffers[b];
      each_copy(prices_, buffer, ways_.of(b), places, [&](uint32_t from, uint32_t to) {
        const HopPrice& hop = prices_.hop(from, to);
        const double us = buffer.share * ways_.of(b).hop_us(from, to);
        engine_[prices_.engine(from, to)] += us;
        const uint32_t device = prices_.submitter(from, to);
        if (!hop.overlaps_compute)
          load_[device] += us;
        else if (!prices_.crossing_us.empty())
          load_[device] += buffer.share * prices_.crossing_us[device];
        score.bytes += buffer.share * buffer.bytes;
        ++score.copies;
      });
    }
    for (uint32_t d = 0; d < prices_.domains; ++d)
      score.load_us = std::max(score.load_us, load_[d] / std::max(1u, prices_.workers[d]));
    for (const double us : engine_) score.load_us = std::max(score.load_us, us);
    if (prices_.period_us > 0) score.overload = std::max(0.0, score.load_us / (kFillMax * prices_.period_us) - 1);
    score.latency_us = latency_us(places);
    return score;
  }

 private:
  // Finds the regions and adds what each of them takes beside its calls. The n-th region of a domain is behind the way
  // out of the one before it (capture.cpp).
  void add_regions(const Places& places) {
    if (prices_.region_us.empty()) return;
    const uint32_t domains = prices_.domains;
    passed_.assign(places.size() * domains, 0);
    region_share_.assign(places.size() * domains, 0);
    for (uint32_t t = 0; t < places.size(); ++t) {
      const uint32_t here = places[t];
      uint32_t* const passed = &passed_[t * domains];
      uint32_t region = 1;
      for (const uint32_t b : read_by_.of(t)) {
        const uint32_t producer = prices_.buffers[b].producer;
        if (producer >= t) continue; // by a delay: of an earlier tick
        const uint32_t* const before = &passed_[producer * domains];
        for (uint32_t d = 0; d < domains; ++d) passed[d] = std::max(passed[d], before[d]);
        region = std::max(region, before[here] + (places[producer] == here ? 0 : 1));
      }
      passed[here] = std::max(passed[here], region);
      double& share = region_share_[here * places.size() + region - 1];
      opens_region_[t] = share == 0;
      if (prices_.tasks[t].share <= share) continue;
      load_[here] += (prices_.tasks[t].share - share) * prices_.region_us[here];
      share = prices_.tasks[t].share;
    }
  }

  // What a task takes longer because it reads some of its inputs where they are.
  double reading_us(uint32_t t, const Places& places) const {
    if (!can_access_) return 0;
    double us = 0;
    for (const uint32_t b : read_by_.of(t)) {
      const Prices::Buffer& buffer = prices_.buffers[b];
      if (reads_in_place(prices_, buffer, ways_.of(b), places, places[t]))
        us += buffer.bytes * prices_.hop(places[buffer.producer], places[t]).access_us_per_byte;
    }
    return us;
  }

  // One tick alone: each call on the worker of its domain that is free first, each copy on its engine.
  double latency_us(const Places& places) {
    there_.assign(prices_.buffers.size() * prices_.domains, 0);
    engine_.assign(prices_.domains * prices_.domains, 0);
    for (uint32_t d = 0; d < prices_.domains; ++d) worker_free_[d].assign(std::max(1u, prices_.workers[d]), 0);
    double last = 0;
    for (uint32_t t = 0; t < prices_.tasks.size(); ++t) {
      const uint32_t domain = places[t];
      double ready = 0;
      for (const uint32_t b : read_by_.of(t)) ready = std::max(ready, there_[b * prices_.domains + domain]);
      double& worker = *std::min_element(worker_free_[domain].begin(), worker_free_[domain].end());
      worker = std::max(ready, worker) + prices_.tasks[t].latency_us(domain) + reading_us(t, places);
      if (opens_region_[t]) worker += prices_.region_us[domain];
      last = std::max(last, worker);
      for (const uint32_t b : made_by_.of(t)) carry(b, worker, places);
    }
    return last;
  }

  void carry(uint32_t b, double made, const Places& places) {
    const Prices::Buffer& buffer = prices_.buffers[b];
    double* const there = &there_[b * prices_.domains];
    std::fill(there, there + prices_.domains, made); // also where it is read in place
    each_copy(prices_, buffer, ways_.of(b), places, [&](uint32_t from, uint32_t to) {
      const HopPrice& hop = prices_.hop(from, to);
      double& engine = engine_[prices_.engine(from, to)];
      engine = std::max(engine, there[from]);
      if (!hop.overlaps_compute) engine = std::max(engine, worker_free_[prices_.submitter(from, to)][0]);
      engine += ways_.late_hop_us(b, from, to);
      if (!hop.overlaps_compute) worker_free_[prices_.submitter(from, to)][0] = engine;
      there[to] = engine;
    });
  }

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
      while (push(source, sink, Prices::kNever) > 0) {
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
    std::queue<uint32_t> todo;
    todo.push(source);
    while (!todo.empty()) {
      const uint32_t at = todo.front();
      todo.pop();
      for (const uint32_t a : first_[at]) {
        if (arcs_[a].left <= kNothing || depth_[arcs_[a].to] >= 0) continue;
        depth_[arcs_[a].to] = depth_[at] + 1;
        todo.push(arcs_[a].to);
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
  std::vector<size_t> next_;
};

// See least_sum().
Places cut(const Prices& prices, const WaysBySize& ways, Places places, uint32_t a, uint32_t b) {
  const auto tasks = static_cast<uint32_t>(prices.tasks.size());
  const auto buffers = static_cast<uint32_t>(prices.buffers.size());
  const uint32_t source = tasks + 2 * buffers, sink = source + 1; // a task on the source's side runs in `a`
  Flow flow(sink + 1);
  const auto free = [&](uint32_t t) {
    return prices.tasks[t].us[a] != Prices::kNever || prices.tasks[t].us[b] != Prices::kNever;
  };
  for (uint32_t t = 0; t < tasks; ++t) {
    if (!free(t)) continue;
    flow.add(source, t, prices.tasks[t].us[b]); // paid where it runs in b
    flow.add(t, sink, prices.tasks[t].us[a]);
  }
  for (uint32_t i = 0; i < buffers; ++i) {
    const Prices::Buffer& buffer = prices.buffers[i];
    if (!free(buffer.producer)) continue;
    // One copy for all its readers over there: a node that follows them, and whose arc to the producer has the price.
    const uint32_t to_b = tasks + 2 * i, to_a = to_b + 1;
    flow.add(buffer.producer, to_b, ways.of(i).us(a, b));
    flow.add(to_a, buffer.producer, ways.of(i).us(b, a));
    for (const uint32_t reader : buffer.readers) {
      if (!free(reader)) continue;
      flow.add(to_b, reader, Prices::kNever);
      flow.add(reader, to_a, Prices::kNever);
    }
  }
  const std::vector<bool> side = flow.cut(source, sink);
  for (uint32_t t = 0; t < tasks; ++t)
    if (free(t)) places[t] = side[t] ? a : b;
  return places;
}

// Better placements from one that is there, one move after another.
class Search {
 public:
  Search(const Prices& prices, const WaysBySize& ways, Choice& best)
      : prices_(prices), best_(best), score_of_(prices, ways), next_(prices.tasks.size()) {
    for (const Prices::Buffer& buffer : prices.buffers)
      for (const uint32_t reader : buffer.readers) next_[buffer.producer].push_back(reader);
  }

  void from(Places places) {
    looks_left_ = prices_.tasks.size() > kTasksSmall ? kLooksOfLarge / (4 * prices_.domains) : SIZE_MAX;
    Score score = score_of_(places);
    while (looks_left_ > 0 && (improve(places, score) || move_two(places, score))) {
    }
    if (best_.places.empty() || is_better(prices_, score, best_.score)) {
      best_.places = std::move(places);
      best_.score = score;
    }
  }

 private:
  // Moves a task, or a task and what follows it, to another domain; true where something was better.
  bool improve(Places& places, Score& score) {
    bool moved = false;
    for (uint32_t t = 0; t < prices_.tasks.size(); ++t) {
      for (uint32_t to = 0; to < prices_.domains; ++to) {
        Places candidate = places;
        for (uint32_t at = t; looks_left_ > 0;) {
          if (prices_.tasks[at].us[to] == Prices::kNever) break;
          const bool changes = candidate[at] != to;
          candidate[at] = to;
          if (changes) {
            --looks_left_;
            const Score with = score_of_(candidate);
            if (is_better(prices_, with, score)) {
              places = candidate;
              score = with;
              moved = true;
            }
          }
          if (next_[at].empty()) break;
          at = next_[at][0];
        }
      }
    }
    return moved;
  }

  // Two tasks at once, wherever they are: of a full resource one has to leave before another can come.
  bool move_two(Places& places, Score& score) {
    if (prices_.tasks.size() > kTasksInPairs) return false;
    bool moved = false;
    Places candidate = places;
    const auto can = [&](size_t t, uint32_t to) { return prices_.tasks[t].us[to] != Prices::kNever; };
    for (size_t t = 0; t < places.size(); ++t)
      for (size_t u = t + 1; u < places.size(); ++u)
        for (uint32_t to = 0; to < prices_.domains; ++to)
          for (uint32_t also = 0; also < prices_.domains; ++also) {
            if (to == places[t] || also == places[u] || !can(t, to) || !can(u, also)) continue;
            candidate[t] = to;
            candidate[u] = also;
            const Score with = score_of_(candidate);
            if (is_better(prices_, with, score)) {
              places = candidate;
              score = with;
              moved = true;
            }
            candidate[t] = places[t];
            candidate[u] = places[u];
          }
    return moved;
  }

  const Prices& prices_;
  Choice& best_;
  Evaluator score_of_;
  std::vector<std::vector<uint32_t>> next_; // readers of what a task makes
  size_t looks_left_ = 0;
};

// Where each task is cheapest, copies left aside, with `wanted` before all others.
Places all_on(const Prices& prices, uint32_t wanted) {
  Places places;
  for (const Prices::Task& task : prices.tasks) {
    const auto cheapest = static_cast<uint32_t>(std::min_element(task.us.begin(), task.us.end()) - task.us.begin());
    places.push_back(task.us[wanted] == Prices::kNever ? cheapest : wanted);
  }
  return places;
}

bool try_all(const Prices& prices, const WaysBySize& ways, Choice& best) {
  double count = 1;
  std::vector<std::vector<uint32_t>> choices;
  for (const Prices::Task& task : prices.tasks) {
    choices.emplace_back();
    for (uint32_t d = 0; d < prices.domains; ++d)
      if (task.us[d] != Prices::kNever) choices.back().push_back(d);
    count *= static_cast<double>(choices.back().size());
  }
  if (count > kEnumerateMax) return false;
  std::vector<size_t> at(choices.size(), 0);
  Places places(choices.size());
  Evaluator score_of(prices, ways);
  for (;;) {
    for (size_t t = 0; t < at.size(); ++t) places[t] = choices[t][at[t]];
    const Score score = score_of(places);
    if (best.places.empty() || is_better(prices, score, best.score)) {
      best.places = places;
      best.score = score;
    }
    size_t t = 0;
    while (t < at.size() && ++at[t] == choices[t].size()) at[t++] = 0;
    if (t == at.size()) return true;
  }
}

// Among placements as good as the best, one move away: the one that carries fewer bytes (5.4).
void save_bytes(const Prices& prices, const WaysBySize& ways, Choice& choice) {
  if (prices.tasks.size() > kTasksSmall) return;
  const Score best = choice.score;
  Evaluator score_of(prices, ways);
  const auto as_good = [](double a, double b) { return a <= b + std::max(kSameUs, kSamePart * b); };
  for (uint32_t t = 0; t < prices.tasks.size(); ++t) {
    for (uint32_t to = 0; to < prices.domains; ++to) {
      if (prices.tasks[t].us[to] == Prices::kNever || to == choice.places[t]) continue;
      Places places = choice.places;
      places[t] = to;
      const Score score = score_of(places);
      if (score.overload > best.overload || !as_good(score.latency_us, best.latency_us)) continue;
      // Of loads the part counts: of a tick that takes 80 µs, 50 are no trifle.
      if (prices.period_us == 0 && score.load_us > best.load_us * (1 + kSamePart)) continue;
      const bool fewer = score.bytes < choice.score.bytes && !same(score.bytes, choice.score.bytes);
      if (!fewer) continue;
      choice.places = places;
      choice.score = score;
    }
  }
}

// No placement is below this: the longest way with every call at its cheapest and no copy; without a period all
// cheapest calls shared out over all workers, or the longest of them.
double bound_us(const Prices& prices) {
  std::vector<double> end(prices.tasks.size(), 0);
  double longest = 0, sum = 0, largest = 0, workers = 0;
  for (size_t t = 0; t < prices.tasks.size(); ++t) {
    const double least = *std::min_element(prices.tasks[t].us.begin(), prices.tasks[t].us.end());
    end[t] += least;
    longest = std::max(longest, end[t]);
    sum += least * prices.tasks[t].share;
    largest = std::max(largest, least * prices.tasks[t].share);
    for (const Prices::Buffer& buffer : prices.buffers)
      if (buffer.producer == t)
        for (const uint32_t reader : buffer.readers) end[reader] = std::max(end[reader], end[t]);
  }
  for (const uint32_t count : prices.workers) workers += std::max(1u, count);
  return prices.period_us > 0 ? longest : std::max(largest, sum / workers);
}

} // namespace

Score evaluate(const Prices& prices, const Places& places) {
  const WaysBySize ways(prices);
  return Evaluator(prices, ways)(places);
}

bool is_better(const Prices& prices, const Score& a, const Score& b) {
  if (!same(a.overload, b.overload)) return a.overload < b.overload;
  if (prices.period_us == 0 && !same(a.load_us, b.load_us)) return a.load_us < b.load_us;
  if (!same(a.latency_us, b.latency_us)) return a.latency_us < b.latency_us;
  if (!same(a.bytes, b.bytes)) return a.bytes < b.bytes;
  return a.copies < b.copies;
}

double sum_us(const Prices& prices, const Places& places) {
  const WaysBySize ways(prices);
  double sum = 0;
  for (size_t t = 0; t < places.size(); ++t) sum += prices.tasks[t].us[places[t]];
  for (size_t b = 0; b < prices.buffers.size(); ++b) {
    each_copy(prices, prices.buffers[b], ways.of(b), places,
              [&](uint32_t from, uint32_t to) { sum += ways.of(b).hop_us(from, to); });
  }
  return sum;
}

Places least_sum(const Prices& prices, Places places, uint32_t a, uint32_t b) {
  return cut(prices, WaysBySize(prices), std::move(places), a, b);
}

Choice choose_places(const Prices& prices, bool enumerate) {
  Choice best;
  const WaysBySize ways(prices);
  best.exact = enumerate && try_all(prices, ways, best);
  if (!best.exact) {
    Search search(prices, ways, best);
    for (uint32_t host = 0; host < prices.domains; ++host)
      for (uint32_t d = 0; prices.is_host(host) && d < prices.domains; ++d)
        for (const double price : kLoadPrices) {
          if (prices.is_host(d)) continue;
          Prices dearer = prices;
          for (Prices::Task& task : dearer.tasks) task.us[d] *= price;
          search.from(cut(dearer, ways, all_on(prices, host), host, d));
        }
    for (uint32_t d = 0; d < prices.domains; ++d) search.from(all_on(prices, d));
  }
  best.bound_us = bound_us(prices);
  save_bytes(prices, ways, best);
  return best;
}

} // namespace millrace::plan
