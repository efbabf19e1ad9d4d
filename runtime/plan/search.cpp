// Searches for a placement: it tries small graphs in every way; larger ones begin at cuts and at one domain for all,
// and it moves tasks and chains while anything gets better.
#include <algorithm>

#include "plan/evaluate.h"
#include "plan/min_cut.h"

namespace millrace::plan {

namespace {

// If there are no more placements than this, all are tried.
constexpr double kEnumerateMax = 4096;
// The number of candidates that a search looks at: unlimited up to this many tasks, then so few that a large graph
// plans at once.
constexpr size_t kTasksSmall = 32, kLooksOfLarge = 220;
// Up to this many tasks, tasks are also moved two at a time.
constexpr size_t kTasksInPairs = 16;
// Factors on the price of a device's calls before a cut, so that fewer of them go there: they stand for its load.
constexpr double kLoadPrices[] = {1, 1.5, 3};
// Times that differ by less are as good as each other (5.4).
constexpr double kSamePart = 0.05, kSameUs = 50;

// Improves a placement, one move after another.
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
  // Moves a task, or a task and what follows it, to another domain; true if something got better.
  bool improve(Places& places, Score& score) {
    bool moved = false;
    for (uint32_t t = 0; t < prices_.tasks.size(); ++t) {
      for (uint32_t to = 0; to < prices_.domains; ++to) {
        Places candidate = places;
        for (uint32_t at = t; looks_left_ > 0;) {
          if (prices_.tasks[at].us[to] == Prices::kInfeasible) break;
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

  // Moves two tasks at once, wherever they are: one may have to leave a full resource before another can come.
  bool move_two(Places& places, Score& score) {
    if (prices_.tasks.size() > kTasksInPairs) return false;
    bool moved = false;
    Places candidate = places;
    const auto can = [&](size_t t, uint32_t to) { return prices_.tasks[t].us[to] != Prices::kInfeasible; };
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

// Puts each task into `wanted` if it can run there, else where its call is cheapest, copies left aside.
Places all_on(const Prices& prices, uint32_t wanted) {
  Places places;
  for (const Prices::Task& task : prices.tasks) {
    const auto cheapest = static_cast<uint32_t>(std::min_element(task.us.begin(), task.us.end()) - task.us.begin());
    places.push_back(task.us[wanted] == Prices::kInfeasible ? cheapest : wanted);
  }
  return places;
}

bool try_all(const Prices& prices, const WaysBySize& ways, Choice& best) {
  double count = 1;
  std::vector<std::vector<uint32_t>> choices;
  for (const Prices::Task& task : prices.tasks) {
    choices.emplace_back();
    for (uint32_t d = 0; d < prices.domains; ++d)
      if (task.us[d] != Prices::kInfeasible) choices.back().push_back(d);
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

// Chooses the placement of fewest bytes among those that are as good as the best and one move away from it (5.4).
void save_bytes(const Prices& prices, const WaysBySize& ways, Choice& choice) {
  if (prices.tasks.size() > kTasksSmall) return;
  const Score best = choice.score;
  Evaluator score_of(prices, ways);
  const auto as_good = [](double a, double b) { return a <= b + std::max(kSameUs, kSamePart * b); };
  for (uint32_t t = 0; t < prices.tasks.size(); ++t) {
    for (uint32_t to = 0; to < prices.domains; ++to) {
      if (prices.tasks[t].us[to] == Prices::kInfeasible || to == choice.places[t]) continue;
      Places places = choice.places;
      places[t] = to;
      const Score score = score_of(places);
      if (score.overload > best.overload || !as_good(score.latency_us, best.latency_us)) continue;
      // For loads only the ratio counts: 50 µs are no trifle in a tick that takes 80 µs.
      if (prices.period_us == 0 && score.load_us > best.load_us * (1 + kSamePart)) continue;
      const bool fewer = score.bytes < choice.score.bytes && !same(score.bytes, choice.score.bytes);
      if (!fewer) continue;
      choice.places = places;
      choice.score = score;
    }
  }
}

// A lower bound for all placements: the longest way with every call at its cheapest and no copy; without a period, all
// cheapest calls shared out over all workers, or the longest of them.
double bound_us(const Prices& prices) {
  std::vector<double> end(prices.tasks.size(), 0);
  double longest = 0, sum = 0, largest = 0, workers = 0;
  for (size_t t = 0; t < prices.tasks.size(); ++t) {
    const double least = *std::min_element(prices.tasks[t].us.begin(), prices.tasks[t].us.end());
    end[t] += least;
    longest = std::max(longest, end[t]);
    sum += least * prices.tasks[t].share;
    largest = std::max(largest, least * prices.tasks[t].share / prices.tasks[t].streams);
    for (const Prices::Buffer& buffer : prices.buffers)
      if (buffer.producer == t)
        for (const uint32_t reader : buffer.readers) end[reader] = std::max(end[reader], end[t]);
  }
  for (const uint32_t count : prices.workers) workers += std::max(1u, count);
  return prices.period_us > 0 ? longest : std::max(largest, sum / workers);
}

} // namespace

Choice choose_places(const Prices& prices, bool enumerate) {
  Choice best;
  const WaysBySize ways(prices);
  best.exact = enumerate && try_all(prices, ways, best);
  if (!best.exact) {
    Search search(prices, ways, best);
    for (uint32_t host = 0; host < prices.domains; ++host)
      for (uint32_t d = 0; prices.is_host(host) && d < prices.domains; ++d)
        for (const double price : kLoadPrices) {
          if (d == host) continue;
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
