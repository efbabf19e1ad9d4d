// Searches for a placement. Small graphs are tried in every way. Larger graphs start from min-cuts and from
// all-in-one-domain, then improve by local moves.
#include <algorithm>
#include <bit>

#include "plan/evaluate.h"
#include "plan/min_cut.h"

namespace millrace::plan {

namespace {

// If there are no more placements than this, all are tried.
constexpr double kEnumerateMax = 4096;
// Up to this many tasks, a search looks at every move until none is better.
constexpr uint32_t kTasksSmall = 32;
// Larger graphs have this number of looks for all starts together: 666 with 33 tasks, 220 from 100 on. A look at one
// candidate takes time in proportion to the tasks, so graphs of up to 100 tasks take as long as each other.
constexpr uint32_t kLooksOfLarge = 220, kTasksLookedAt = kLooksOfLarge * 100;
// The longest run of tasks that moves at once is one of this many parts of a large graph. Longer runs fill one device
// before the others get a share.
constexpr uint32_t kRunsMin = 16;
// Up to this many tasks, tasks are also moved two at a time.
constexpr size_t kTasksInPairs = 16;
// Price factors for the min-cut, to imitate a loaded device.
constexpr double kLoadPrices[] = {1, 1.5, 3};
// Times that differ by less are as good as each other (5.4).
constexpr double kSamePart = 0.05, kSameUs = 50;

// Improves placements of small graphs: it looks at every move.
class Search {
 public:
  Search(const Prices& prices, const WaysBySize& ways)
      : prices_(prices), score_of_(prices, ways), next_(prices.tasks.size()) {
    for (const Prices::Buffer& buffer : prices.buffers)
      for (const uint32_t reader : buffer.readers) next_[buffer.producer].push_back(reader);
  }

  Choice from(Places places) {
    Choice choice{std::move(places), {}};
    choice.score = score_of_(choice.places);
    while (improve(choice) || move_two(choice)) {
    }
    return choice;
  }

 private:
  bool can(size_t t, uint32_t to) const { return prices_.tasks[t].us[to] != Prices::kInfeasible; }

  // Moves a task, or a task and what follows it, to another domain; true if something got better.
  bool improve(Choice& choice) {
    bool moved = false;
    Places candidate;
    for (uint32_t t = 0; t < prices_.tasks.size(); ++t) {
      for (uint32_t to = 0; to < prices_.domains; ++to) {
        candidate = choice.places;
        for (uint32_t at = t; can(at, to); at = next_[at][0]) {
          const bool changes = candidate[at] != to;
          candidate[at] = to;
          if (changes && score_of_.improves(candidate, choice.score)) {
            choice.places = candidate;
            moved = true;
          }
          if (next_[at].empty()) break;
        }
      }
    }
    return moved;
  }

  // Moves two tasks at once, wherever they are: one may have to leave a full resource before another can come.
  bool move_two(Choice& choice) {
    if (prices_.tasks.size() > kTasksInPairs) return false;
    bool moved = false;
    Places candidate = choice.places;
    for (size_t t = 0; t < candidate.size(); ++t)
      for (size_t u = t + 1; u < candidate.size(); ++u)
        for (uint32_t to = 0; to < prices_.domains; ++to)
          for (uint32_t also = 0; also < prices_.domains; ++also) {
            if (to == choice.places[t] || also == choice.places[u] || !can(t, to) || !can(u, also)) continue;
            candidate[t] = to;
            candidate[u] = also;
            if (score_of_.improves(candidate, choice.score)) {
              choice.places = candidate;
              moved = true;
            }
            candidate[t] = choice.places[t];
            candidate[u] = choice.places[u];
          }
    return moved;
  }

  const Prices& prices_;
  Evaluator score_of_;
  std::vector<std::vector<uint32_t>> next_; // readers of what a task makes
};

// Improves placements of large graphs with a limited number of looks. Domains meet at borders: edges from a task in one
// domain to a task in another. The search shifts borders, first by long runs of tasks and then by shorter ones, because
// few looks must move many tasks. A cursor goes round all tasks and never starts again, so every task gets its turn.
class BorderSearch {
 public:
  BorderSearch(const Prices& prices, const WaysBySize& ways)
      : prices_(prices),
        score_of_(prices, ways),
        count_(static_cast<uint32_t>(prices.tasks.size())),
        after_(count_),
        before_(count_),
        looks_left_(std::max(kLooksOfLarge, kTasksLookedAt / count_)) {
    for (const Prices::Buffer& buffer : prices.buffers)
      for (const uint32_t reader : buffer.readers) {
        after_[buffer.producer].push_back(reader);
        before_[reader].push_back(buffer.producer);
      }
  }

  Score score(const Places& places) { return score_of_(places); }

  void improve(Choice& choice) {
    for (bool again = true; again && looks_left_ > 0;) {
      again = false;
      for (const Goal goal : {Goal::best, Goal::even}) {
        goal_ = goal;
        for (uint32_t length = std::bit_floor(count_ / kRunsMin); length > 0; length /= 2)
          while (shift_borders(choice, length)) again = true;
      }
      again = again || begin_anywhere(choice);
    }
  }

 private:
  // The tasks that each task exchanges values with.
  using Neighbours = std::vector<std::vector<uint32_t>>;

  // Goes round all tasks once and moves runs of `length` over the borders where that is better; true if it moved any.
  bool shift_borders(Choice& choice, uint32_t length) {
    bool moved = false;
    for (uint32_t i = 0; i < count_ && looks_left_ > 0; ++i) {
      const uint32_t t = next_task();
      if (!is_at_border(choice.places, t)) continue;
      const uint32_t from = choice.places[t];
      for (uint32_t to = 0; to < prices_.domains && choice.places[t] == from; ++to)
        moved |= move_run(choice, t, to, length, after_) || (length > 1 && move_run(choice, t, to, length, before_));
    }
    return moved;
  }

  // Moves the first task, or run of tasks, that is better elsewhere, at a border or not; false if there is none.
  bool begin_anywhere(Choice& choice) {
    for (uint32_t i = 0; i < count_ && looks_left_ > 0; ++i) {
      const uint32_t t = next_task();
      for (uint32_t to = 0; to < prices_.domains; ++to)
        if (move_run(choice, t, to, 1, after_) || move_run(choice, t, to, count_, after_)) return true;
    }
    return false;
  }

  uint32_t next_task() {
    const uint32_t t = cursor_;
    cursor_ = (cursor_ + 1) % count_;
    return t;
  }

  bool is_at_border(const Places& places, uint32_t t) const {
    const auto is_elsewhere = [&](uint32_t other) { return places[other] != places[t]; };
    return std::any_of(after_[t].begin(), after_[t].end(), is_elsewhere) ||
           std::any_of(before_[t].begin(), before_[t].end(), is_elsewhere);
  }

  // Moves `t` and at most `length` - 1 tasks along a chain from it that are in its domain, if that is better. Runs of
  // `length` / 2 tasks or fewer are left to a smaller `length`.
  bool move_run(Choice& choice, uint32_t t, uint32_t to, uint32_t length, const Neighbours& along) {
    const uint32_t from = choice.places[t];
    if (from == to || looks_left_ == 0) return false;
    run_.clear();
    for (uint32_t at = t; run_.size() < length && choice.places[at] == from; at = along[at][0]) {
      if (prices_.tasks[at].us[to] == Prices::kInfeasible) break;
      run_.push_back(at);
      if (along[at].empty()) break;
    }
    if (run_.size() <= length / 2) return false;
    --looks_left_;
    for (const uint32_t at : run_) choice.places[at] = to;
    if (score_of_.improves(choice.places, choice.score, goal_)) return true;
    for (const uint32_t at : run_) choice.places[at] = from;
    return false;
  }

  const Prices& prices_;
  Evaluator score_of_;
  const uint32_t count_;
  Neighbours after_, before_; // readers of what a task makes, and producers of what it reads
  std::vector<uint32_t> run_;
  uint32_t looks_left_;
  uint32_t cursor_ = 0;
  Goal goal_ = Goal::best;
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
      // Compare loads by ratio: 50 µs matters in an 80 µs tick.
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

// The placements that a search begins at.
std::vector<Places> starts_of(const Prices& prices, const WaysBySize& ways) {
  std::vector<Places> starts;
  for (uint32_t host = 0; host < prices.domains; ++host)
    for (uint32_t d = 0; prices.is_host(host) && d < prices.domains; ++d)
      for (const double price : kLoadPrices) {
        if (d == host) continue;
        Prices dearer = prices;
        for (Prices::Task& task : dearer.tasks) task.us[d] *= price;
        starts.push_back(cut(dearer, ways, all_on(prices, host), host, d));
      }
  for (uint32_t d = 0; d < prices.domains; ++d) starts.push_back(all_on(prices, d));
  return starts;
}

// Searches from all starts; the looks of large graphs go to the best start first.
Choice search_from(std::vector<Places> starts, const Prices& prices, const WaysBySize& ways) {
  const auto is_first = [&](const Choice& a, const Choice& b) { return is_better(prices, a.score, b.score); };
  std::vector<Choice> choices;
  if (prices.tasks.size() <= kTasksSmall) {
    Search search(prices, ways);
    for (Places& places : starts) choices.push_back(search.from(std::move(places)));
  } else {
    BorderSearch search(prices, ways);
    for (Places& places : starts) {
      const Score score = search.score(places);
      choices.push_back({std::move(places), score});
    }
    std::stable_sort(choices.begin(), choices.end(), is_first);
    const auto are_same = [](const Choice& a, const Choice& b) { return a.places == b.places; };
    choices.erase(std::unique(choices.begin(), choices.end(), are_same), choices.end());
    for (Choice& choice : choices) search.improve(choice);
  }
  return std::move(*std::min_element(choices.begin(), choices.end(), is_first));
}

} // namespace

Choice choose_places(const Prices& prices, bool enumerate) {
  Choice best;
  const WaysBySize ways(prices);
  best.exact = enumerate && try_all(prices, ways, best);
  if (!best.exact) best = search_from(starts_of(prices, ways), prices, ways);
  best.bound_us = bound_us(prices);
  save_bytes(prices, ways, best);
  return best;
}

} // namespace millrace::plan
